package main

import (
	"os/exec"
	"testing"
)

// A patch that no longer fits the tree is noticed with the change that it does
// not fit, not when somebody runs the mutants.
func TestPatchesApply(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is needed: ", err)
	}
	t.Chdir("../..")
	all, err := load(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if out, err := command(t.Context(), ".", "git", "apply", "--check", m.path); err != nil {
			t.Errorf("%s: %s", m.name, out)
		}
	}
}
