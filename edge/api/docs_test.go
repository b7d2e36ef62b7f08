package api_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/edge/api"
)

var update = flag.Bool("update", false, "rewrite docs/PROTOCOL.md and the changelog's table")

const (
	protocolPage = "../../docs/PROTOCOL.md"
	changelog    = "../../CHANGELOG.md"
	tableBegins  = "<!-- the table of versions: made by go test ./edge/api -run Page -update -->\n"
	tableEnds    = "<!-- end of the table of versions -->\n"
)

// The page is made from the table that answers ApiVersions.
func TestProtocolPage(t *testing.T) {
	compare(t, protocolPage, protocol())
}

// The newest table of the changelog is what this version announces, so that no
// window changes without a word to users.
func TestChangelogPage(t *testing.T) {
	text, err := os.ReadFile(changelog)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok || !ok2 {
		t.Fatal("CHANGELOG.md has lost the marks of its table of versions")
	}
	compare(t, changelog, before+tableBegins+"\n"+versions()+"\n"+tableEnds+after)
}

func compare(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of date; run: go test ./edge/api -run Page -update", path)
	}
}

// rows is the table by API key.
func rows() []api.Row {
	table := slices.Clone(api.Table())
	slices.SortFunc(table, func(a, b api.Row) int { return int(a.Key) - int(b.Key) })
	return table
}

func window(r api.Row) string {
	if r.Min == r.Max {
		return strconv.Itoa(int(r.Min))
	}
	return fmt.Sprintf("%d–%d", r.Min, r.Max)
}

func versions() string {
	var b strings.Builder
	b.WriteString("| Key | API | Versions |\n|---|---|---|\n")
	for _, r := range rows() {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", r.Key, r.Name, window(r))
	}
	return b.String()
}

func protocol() string {
	var b strings.Builder
	b.WriteString(`# Protocol

The APIs this version announces, and everything it may answer. This page is made from the table the program works with
(` + "`edge/api/table.go`" + `). Other keys and versions close the connection; ApiVersions of an unknown version is answered with error 35.

| Key | API | Versions | Before login | Largest request | Error codes |
|---|---|---|---|---|---|
`)
	for _, r := range rows() {
		login := ""
		if r.Phase == api.BeforeLogin {
			login = "yes"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %d MiB | %s |\n", r.Key, r.Name, window(r), login, r.MaxFrame>>20, codes(r.Codes))
	}
	b.WriteString("\nBefore login no request may be larger than 64 KiB.\n")
	return b.String()
}

func codes(list []int16) string {
	list = slices.Clone(list)
	slices.Sort(list)
	var out []string
	for _, code := range list {
		name := "?"
		if err, ok := kerr.ErrorForCode(code).(*kerr.Error); ok {
			name = err.Message
		}
		out = append(out, fmt.Sprintf("%s (%d)", name, code))
	}
	return strings.Join(out, ", ")
}
