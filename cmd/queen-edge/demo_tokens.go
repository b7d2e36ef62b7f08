package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// demoToken is one key of the demo; label is its name in the env file.
type demoToken struct {
	label   string
	cluster string
	scopes  []string
	text    string
}

// makeTokens makes sure of the two clusters and gives each new keys. Keys of
// earlier starts go on working; their texts are kept nowhere.
func makeTokens(c *control.Store) ([]demoToken, error) {
	limits := control.Overrides{
		"max_batch_items": json.RawMessage("100000"),
	}
	for _, slug := range []string{"acme", "globex"} {
		_, err := c.CreateCluster(control.NewCluster{Slug: slug, Overrides: limits})
		if err != nil && !errors.Is(err, control.ErrExists) {
			return nil, err
		}
	}
	all := []string{"produce", "consume", "admin", "read"}
	tokens := []demoToken{
		{label: "ACME", cluster: "acme", scopes: all},
		{label: "ACME_2", cluster: "acme", scopes: all},
		{label: "ACME_CONSUME", cluster: "acme", scopes: []string{"consume", "read"}},
		{label: "ACME_PRODUCE", cluster: "acme", scopes: []string{"produce", "read"}},
		{label: "ACME_TXN", cluster: "acme", scopes: []string{"produce", "consume", "read"}},
		{label: "ACME_NOREAD", cluster: "acme", scopes: []string{"consume"}},
		{label: "GLOBEX", cluster: "globex", scopes: all},
	}
	for i := range tokens {
		t := &tokens[i]
		scopes, err := control.ParseScopes(t.scopes...)
		if err != nil {
			return nil, err
		}
		if t.text, _, err = c.CreateKey(control.NewKey{Cluster: t.cluster, Scopes: scopes}); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

func (d *demoRun) token(label string) string {
	for _, t := range d.tokens {
		if t.label == label {
			return t.text
		}
	}
	return ""
}

// writeEnv writes what a program needs to use the demo, atomically, so that
// whoever waits for the file never reads half of it.
func (d *demoRun) writeEnv(path string) error {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%s=%s\n", name, value) }
	line("QUEEN_EDGE_BOOTSTRAP", d.bootstrap())
	line("QUEEN_EDGE_SNI", demoHost)
	line("QUEEN_EDGE_CA", d.caFile)
	line("QUEEN_EDGE_CELL_URL", "http://"+d.cellLn.Addr().String())
	line("QUEEN_EDGE_CELL_DATA", d.cellDir)
	line("QUEEN_EDGE_PID", fmt.Sprint(os.Getpid()))
	for _, t := range d.tokens {
		line("QUEEN_EDGE_TOKEN_"+t.label, t.text)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".queen-edge-env-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // it is gone after the rename
	_, err = tmp.WriteString(b.String())
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
