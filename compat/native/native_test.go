// Package native holds the embedded cell against the official Python client,
// unmodified, beside Kafka clients on the same queues.
package native

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/rig"
)

var update = flag.Bool("update", false, "rewrite the table of docs/NATIVE.md")

// python finds the client's environment, which ./deps makes. QE_REQUIRE turns a
// missing one from a skip into a failure.
func python(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(".cache/queen-mq/bin/python")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		if os.Getenv("QE_REQUIRE") != "" {
			t.Fatalf("%v: run compat/native/deps", err)
		}
		t.Skipf("%v: run compat/native/deps", err)
	}
	return path
}

// TestPythonClient: docs/NATIVE.md is what this prints.
func TestPythonClient(t *testing.T) {
	interpreter := python(t)
	r := rig.Start(t)
	ctx := rig.Context(t)
	wrote := &kgo.Record{
		Topic: "kafka-wrote", Partition: 0, Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}},
	}
	client := r.Kafka(t, rig.Acme, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := client.ProduceSync(ctx, wrote).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, line := range run(ctx, t, interpreter, r) {
		verdict, call, _ := strings.Cut(line, " ")
		switch verdict {
		case "works":
			fmt.Fprintf(&table, "| `%s` | works |\n", call)
		case "absent":
			call, why, _ := strings.Cut(call, ": ")
			fmt.Fprintf(&table, "| `%s` | no: %s |\n", call, why)
		default:
			t.Error(line)
		}
	}
	checkPage(t, table.String())
	readBack(ctx, t, r)
}

// The table is between these lines of the page.
const (
	tableFrom = "<!-- what works: made by go test ./compat/native -update -->\n"
	tableTo   = "<!-- end of what works -->\n"
)

// checkPage holds the page's table to what works: a call that stops working
// changes it.
func checkPage(t *testing.T, table string) {
	t.Helper()
	const page = "../../docs/NATIVE.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableFrom)
	_, after, ended := strings.Cut(rest, tableTo)
	if !found || !ended {
		t.Fatalf("%s has no table", page)
	}
	fresh := before + tableFrom + "| Call | |\n|---|---|\n" + table + tableTo + after
	if fresh == string(text) {
		return
	}
	if !*update {
		t.Errorf("%s does not say what works (go test ./compat/native -update):\n%s", page, table)
		return
	}
	if err := os.WriteFile(page, []byte(fresh), 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(ctx context.Context, t *testing.T, interpreter string, r *rig.Rig) []string {
	t.Helper()
	cmd := exec.CommandContext(ctx, interpreter, "-B", "client.py")
	cmd.Env = append(os.Environ(),
		"QUEEN_EDGE_CELL_URL="+r.CellURL, "QUEEN_EDGE_TOKEN_ACME="+r.Key(rig.Acme), "QUEEN_EDGE_TOKEN_GLOBEX="+r.Key(rig.Globex),
		"NATIVE_KAFKA_WROTE=kafka-wrote", "NATIVE_FOR_KAFKA=for-kafka")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the client: %v\n%s", err, log.String())
	}
	var lines []string
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}

// readBack reads as a Kafka client what the Python client pushed.
func readBack(ctx context.Context, t *testing.T, r *rig.Rig) {
	t.Helper()
	c := r.Kafka(t, rig.Acme, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"for-kafka": {0: kgo.NewOffset().AtStart()}}))
	var got []string
	for len(got) < 2 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("poll: %v", err)
		}
		fetches.EachRecord(func(rec *kgo.Record) { got = append(got, string(rec.Value)) })
	}
	if want := `{"from":"python"} "text"`; strings.Join(got, " ") != want {
		t.Errorf("a Kafka client reads %q, want %q", strings.Join(got, " "), want)
	}
}
