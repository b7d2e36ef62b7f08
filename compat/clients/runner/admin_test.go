package main

import (
	"strings"
	"testing"
)

// What an administrator says it deleted must have been there, and nobody else
// may have said so.
func TestDeletedOnce(t *testing.T) {
	b := newBlock("c", "1")
	for _, line := range []string{"gone admin-topics r-doomed-3", "config admin-configs retention.ms -1", "config admin-configs segment.ms 5"} {
		if problem := b.take(line); problem != "" {
			t.Errorf("%q: %s", line, problem)
		}
	}
	for _, line := range []string{"gone admin-topics r-doomed-4", "gone admin-groups", "config admin-configs retention.ms", "config admin-configs"} {
		if b.take(line) == "" {
			t.Errorf("%q is taken", line)
		}
	}
	if len(b.configs["admin-configs"]) != 2 {
		t.Errorf("configs %v", b.configs)
	}
	a := &administered{left: map[string]bool{"topic r-doomed-3": true}}
	if err := a.claim("group r-doomed-3"); err == nil {
		t.Error("a group is taken for a topic")
	}
	if err := a.claim("topic " + b.gone["admin-topics"]); err != nil {
		t.Error(err)
	}
	if err := a.claim("topic " + b.gone["admin-topics"]); err == nil || !strings.Contains(err.Error(), "another client") {
		t.Errorf("deleted twice: %v", err)
	}
}

// The ways in which clients say that they are fenced, and ways in which they do not.
func TestFenced(t *testing.T) {
	for text, want := range map[string]bool{
		"There is a newer producer with the same transactionalId which fences the current one: ProducerFencedException": true,
		"INVALID_PRODUCER_EPOCH":                              true,
		"Unknown error, how did this happen? Error code = 90": true,
		"Producer attempted an operation with an old epoch":   true,
		"timed out":                              false,
		"the transaction is in an invalid state": false,
	} {
		b := parseReport("n", "client n 1\nsaid txn-fenced "+text+"\n")[0]
		if got := ofFenced.MatchString(b.said["txn-fenced"]); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
