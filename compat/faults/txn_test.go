package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/history"
)

// logOf is an output in which the numbers are of one transaction.
func logOf(by string, numbers ...int) (log [txnPartitions][]written) {
	for _, n := range numbers {
		p := max(n, 0) % txnPartitions
		log[p] = append(log[p], written{n, by})
	}
	return log
}

func TestEffects(t *testing.T) {
	for _, c := range []struct {
		what    string
		numbers []int
		want    string // empty: nothing is wrong
	}{
		{"each once", []int{0, 1, 2, 3}, ""},
		{"in another order", []int{3, 2, 1, 0}, ""},
		{"one is lost", []int{0, 1, 3}, "1 inputs have no effect"},
		{"one came twice", []int{0, 1, 2, 3, 1}, "1 inputs have their effect more than once"},
		{"one of nobody", []int{0, 1, 2, 3, -1}, "1 records are of no input"},
		{"one that was never fed", []int{0, 1, 2, 3, 4}, "1 records are of no input"},
	} {
		if got := strings.Join(effects(logOf("", c.numbers...), 4), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestAgree(t *testing.T) {
	if got := agree(map[int32]int64{0: 2, 1: 1, 2: 1}, 4); len(got) != 0 {
		t.Errorf("%q", got)
	}
	for _, wrong := range []map[int32]int64{{0: 1, 1: 1, 2: 1}, {0: 2, 1: 1}, {0: 2, 1: 2, 2: 1}} {
		if got := agree(wrong, 4); len(got) != 1 {
			t.Errorf("%v: %q", wrong, got)
		}
	}
}

func TestGhosts(t *testing.T) {
	w := &worker{id: "id", changed: make(chan struct{})}
	for line := range strings.Lines("1 commit 1 1 0:0 0:1\n2 committed 1 1\n3 commit 1 2 0:3 0:2\n4 aborted 1 2\n" +
		"5 commit 1 3 0:3 0:2\n6 met 1 3 commit fenced 90\n7 commit 2 1 0:3 0:2\n") {
		w.take(strings.TrimSpace(line))
	}
	for by, ok := range map[string]bool{
		"id/1/1": true, "id/1/2": false, "id/1/3": false, // committed, aborted, fenced
		"id/2/1": true,                   // nobody was told
		"id/9/9": false, "zombie": false, // nobody asked for its commit
	} {
		tr := &transacting{w: w}
		if got := tr.ghosts(logOf(by, 0)); (len(got) == 0) != ok {
			t.Errorf("%s: %q", by, got)
		}
		if tr.result.txns[history.Committed] != 1 || tr.result.txns[history.Unknown] != 1 {
			t.Errorf("%v", tr.result.txns)
		}
	}
}

// What a transactional program says is taken word by word.
func TestWorkerLines(t *testing.T) {
	w := &worker{id: "id", changed: make(chan struct{})}
	say := func(lines ...string) {
		for _, line := range lines {
			w.take(line)
		}
	}
	say("10 init 1", "20 inited 1", "30 init 2", "40 met 2 0 init fatal SOME_CODE", "50 commit 1 7 0:0,3;2:2 0:2;2:1", "60 committed 1 7",
		"70 aborted 1 8", "80 met 1 9 produce abort OTHER", "90 done")
	at := func(from, to int64) history.Span {
		return history.Span{Call: time.UnixMicro(from), Return: time.UnixMicro(to)}
	}
	want := []txnCall{{
		life: 1, number: 7, at: at(50, 60), outcome: history.Committed,
		writes: map[int32][]int{0: {0, 3}, 2: {2}}, offsets: map[int32]int64{0: 2, 2: 1},
	}}
	if !reflect.DeepEqual(w.txns, want) || len(w.odd) != 0 || !w.done || w.lives() != 1 || len(w.inits) != 2 || w.inits[0].at != at(10, 20) {
		t.Errorf("%+v", w)
	}
	if !reflect.DeepEqual(w.met, []meeting{{"init", metFatal, "SOME_CODE"}, {"produce", metAbort, "OTHER"}}) {
		t.Errorf("%v", w.met)
	}
	odd := []string{
		"", "x done", "1 what", "1 inited", "1 commit 1 8 0:x 0:1", "1 commit 1 8 0 0:1", "1 commit 1 8 0:1",
		"1 committed 1 99", "1 met 1 1 commit maybe CODE", "1 met 1 1 commit abort two words",
	}
	if say(odd...); len(w.odd) != len(odd) {
		t.Errorf("%d of %d are odd: %q", len(w.odd), len(odd), w.odd)
	}
}

func TestPickStrikes(t *testing.T) {
	for _, c := range []struct {
		names string
		full  bool
		want  int
	}{{"zombie", false, 1}, {"gateway-kill", false, 5}, {"gateway-kill@end,503", false, 2}, {"", true, len(strikes())}} {
		if got, err := pickStrikes(c.names, c.full); err != nil || len(got) != c.want {
			t.Errorf("%q: %v, %v", c.names, got, err)
		}
	}
	if got, err := pickStrikes("", false); err != nil || len(got) == 0 || len(got) >= len(strikes()) {
		t.Errorf("the short form: %v, %v", got, err)
	}
	if _, err := pickStrikes("zombie,nothing", true); err == nil {
		t.Error("a fault that is not there was picked")
	}
}

func TestTxnTable(t *testing.T) {
	list, err := pickStrikes("503,zombie", true)
	if err != nil {
		t.Fatal(err)
	}
	met := []meeting{{"commit", metFenced, "PRODUCER_FENCED"}, {"commit", metRetry, "TIMED_OUT"}}
	results := []txnResult{
		{txnTrial: txnTrial{client: client{name: "a"}, strike: list[0]}, struck: 5},
		{txnTrial: txnTrial{client: client{name: "a"}, strike: list[1]}, struck: 5, met: met},
		{txnTrial: txnTrial{client: client{name: "b"}, strike: list[1]}, struck: 4, err: context.Canceled},
	}
	var out bytes.Buffer
	if failed := printTransactions(results, time.Second, &out); !failed {
		t.Error("a failure does not count")
	}
	for _, want := range []string{"503@commit  5  \nzombie@end  5  x\n", "commit: PRODUCER_FENCED (fenced)", "runs=10 ", "\n2 passed, 1 failed\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "TIMED_OUT") {
		t.Error("what a client asks again, its application does not see")
	}
	if failed := printTransactions(results[:2], time.Second, &out); failed {
		t.Error("a success counts as a failure")
	}
}

// Every transactional client has its programs, and nothing else has.
func TestTransactors(t *testing.T) {
	runs, err := filepath.Glob("txn/*/run")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]bool{}
	for _, c := range transactors("txn") {
		folders[c.dir] = true
		for _, file := range []string{"run", "deps"} {
			if info, err := os.Stat(filepath.Join(c.dir, file)); err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("%s/%s: %v", c.name, file, err)
			}
		}
	}
	if len(runs) != len(folders) {
		t.Errorf("%d folders, %v", len(folders), runs)
	}
}
