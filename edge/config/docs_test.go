package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/CONFIGURATION.md")

// The page is made from the table that is read, so that neither can lie about
// the other: go test ./edge/config -run Page -update.
func TestConfigurationPage(t *testing.T) {
	const path = "../../docs/CONFIGURATION.md"
	if *update {
		if err := os.WriteFile(path, []byte(page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page() {
		t.Error("docs/CONFIGURATION.md is out of date; run: go test ./edge/config -run Page -update")
	}
}

func page() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Everything is set by environment variables, read once at the start. Values are
trimmed, and an empty or blank one is unset. A bad value stops the start with a
line that names the variable, the value, the legal range and the default; all
problems are told at once. Tokens are never printed.

This page is made from the table the program reads (` + "`edge/config/env.go`" + `).

| Variable | Default | Legal | What it does |
|---|---|---|---|
`)
	for _, s := range Settings() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, s.Default, s.Legal, s.Does)
	}
	b.WriteString(`
Also refused at the start: an advertised address that is a wildcard
(` + "`0.0.0.0`, `::`" + `), half of the TLS pair, half of the PROXY protocol's, ` + "`QUEEN_KAFKA_FORWARD_SNI_HOST=true`" + ` without
TLS, lanes or ticket keys without TLS, ` + "`sni:`" + ` without lanes, a default lane that is none of the lanes, an advertised
name or address that the lanes would refuse, a certificate whose files are not a pair, a default width above the maximum, a shortest session timeout above the
longest, a token for a side listener that there is not, profiles without a token, a node id without ` + "`QUEEN_TOKEN`" + ` or
with ` + "`sni:`" + `, a cluster's name without a node id, a row's life below three heartbeats, and a transaction larger than all staged transactions may be.

## Of the commands that look for faults

* ` + "`" + probeVariable + "`" + ` is a tenant's token for ` + "`queen-edge check` and `queen-edge doctor`" + ` ([OPERATIONS.md](OPERATIONS.md)). No gateway reads it.

## Not yet

These settings belong to later versions. Setting one stops the start: a
protection that is silently off is worse than no start.

`)
	for _, name := range unbuilt() {
		fmt.Fprintf(&b, "* `%s`\n", name)
	}
	return b.String()
}
