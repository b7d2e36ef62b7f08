package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		what    string
		logs    [][]int
		offsets []int64
		twice   int
		want    string // of the problems; empty: none
	}{
		{"all there", [][]int{{0, 5}, {1}, {2}, {3}, {4}}, []int64{0, 0, 0, 0, 0, 1}, 0, ""},
		{"told without an offset", [][]int{{0, 5}, {1}, {2}, {3}, {4}}, []int64{-1, -1, -1, -1, -1, -1}, 0, ""},
		{"there, and not acknowledged", [][]int{{0, 5}, {1}, {2}, {3}, {4}}, []int64{0, 0, 0, 0, 0, unacked}, 0, ""},
		{"written twice", [][]int{{0, 0, 5, 5}, {1}, {2, 2}, {3}, {4}}, []int64{0, 0, 0, 0, 0, 2}, 3, ""},
		{"a resend behind a later one", [][]int{{0, 5, 0}, {1}, {2}, {3}, {4}}, []int64{0, 0, 0, 0, 0, 1}, 1, ""},
		{"lost", [][]int{{0}, {1}, {2}, {3}, {4}}, []int64{0, 0, 0, 0, 0, 1}, 0, "1 acknowledged records are lost"},
		{"out of order", [][]int{{5, 0, 10}, {1}, {2}, {3}, {4}}, []int64{1, 0, 0, 0, 0, 0}, 0, "1 records came after a later one"},
		{"at another offset", [][]int{{0, 5}, {1}, {2}, {3}, {4}}, []int64{1, 0, 0, 0, 0, 1}, 0, "1 records are not at the offset"},
		{"at an offset that is not there", [][]int{{0, 5}, {1}, {2}, {3}, {4}}, []int64{0, 0, 7, 0, 0, 1}, 0, "1 records are not at the offset"},
	} {
		v := verdict{offsets: c.offsets, seen: make(map[int]int64)}
		for _, log := range c.logs {
			v.log(log)
		}
		v.acknowledged(c.logs)
		if got := strings.Join(v.problems, "; "); !strings.Contains(got, c.want) || (got == "") != (c.want == "") || v.twice != c.twice {
			t.Errorf("%s: %d twice, %q", c.what, v.twice, got)
		}
	}
}

// What a producer program says is taken word by word.
func TestProducerLines(t *testing.T) {
	p := &producer{changed: make(chan struct{})}
	for line := range strings.Lines("ready\nacked 1 7\nacked 0 -1\nfailed 2 it timed out\nacked 1 8\nwhat\nacked 3\nacked x 1\ndone\n") {
		p.take(strings.TrimSpace(line))
	}
	if p.acked != 2 || len(p.failed) != 1 || len(p.odd) != 4 || !p.done || p.offsets[0] != noOffset || p.offsets[1] != 7 {
		t.Errorf("%+v", p)
	}
}

func TestTable(t *testing.T) {
	list, err := pickFaults("503,move")
	if err != nil {
		t.Fatal(err)
	}
	results := []result{
		{trial: trial{client: client{name: "a"}, fault: list[0], window: 900}, fired: 6, acked: 10},
		{trial: trial{client: client{name: "a"}, fault: list[1], window: 900}, fired: 6, acked: 10, duplicates: 1, err: context.Canceled},
		{trial: trial{client: client{name: "b"}, fault: list[0], window: 0}, fired: 5, acked: 3},
	}
	var out bytes.Buffer
	printTables(results, &out)
	if failed := printTotal(results, time.Second, &out); !failed {
		t.Error("a failure does not count")
	}
	for _, want := range []string{"window=900s: 20 records acknowledged, 1 written twice", "503    6\nmove   x\n", "503    5\n", "\n2 passed, 1 failed\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// Every client has its programs, and nothing else has.
func TestClients(t *testing.T) {
	runs, err := filepath.Glob("*/run")
	if err != nil {
		t.Fatal(err)
	}
	all := clients(".")
	if len(runs) != len(all) {
		t.Errorf("%d clients, %v", len(all), runs)
	}
	for _, c := range all {
		for _, file := range []string{"run", "deps"} {
			if info, err := os.Stat(filepath.Join(c.dir, file)); err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("%s/%s: %v", c.name, file, err)
			}
		}
	}
	if _, err := pickClients(all, "franz-go,nobody"); err == nil {
		t.Error("a client that is not there was picked")
	}
}
