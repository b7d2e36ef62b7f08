package tenancy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Programs that forget or forge a tenant must not compile. Each folder of
// testdata/misuse is one; a "// want: …" at the end of a line is a part of the
// compiler's message for that line. The folder without one must compile.
func TestMisuseDoesNotCompile(t *testing.T) {
	programs, err := filepath.Glob("testdata/misuse/*/x.go")
	if err != nil || len(programs) < 2 {
		t.Fatalf("found %d programs: %v", len(programs), err)
	}
	for _, program := range programs {
		t.Run(filepath.Base(filepath.Dir(program)), func(t *testing.T) {
			t.Parallel()
			wants := wanted(t, program)
			out, err := build(filepath.Dir(program))
			if len(wants) == 0 {
				if err != nil {
					t.Fatalf("the control does not compile: %v\n%s", err, out)
				}
				return
			}
			if err == nil {
				t.Fatal("it compiles")
			}
			for _, want := range wants {
				if !says(out, want) {
					t.Errorf("the compiler does not say\n\t%s: %s\nbut\n%s", want.place, want.text, out)
				}
			}
			if stray := strays(out, wants); stray != "" {
				t.Errorf("an error that the program is not there for:\n%s", stray)
			}
		})
	}
}

type want struct{ place, text string }

func wanted(t *testing.T, program string) []want {
	t.Helper()
	source, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var wants []want
	for i, line := range strings.Split(string(source), "\n") {
		if _, text, ok := strings.Cut(line, "// want: "); ok {
			wants = append(wants, want{fmt.Sprintf("x.go:%d:", i+1), strings.TrimSpace(text)})
		}
	}
	return wants
}

func build(dir string) (string, error) {
	// -gcflags=-e lists every error. A package is type-checked and thrown away.
	cmd := exec.Command("go", "build", "-gcflags=-e", "-o", os.DevNull, "./"+filepath.ToSlash(dir))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func says(out string, w want) bool {
	for _, line := range strings.Split(out, "\n") {
		if strings.Contains(line, w.place) && strings.Contains(line, w.text) {
			return true
		}
	}
	return false
}

// strays are the errors of lines that want none: a program that fails for a
// second reason proves nothing.
func strays(out string, wants []want) string {
	var stray []string
	for _, line := range strings.Split(out, "\n") {
		known := !strings.Contains(line, "x.go:")
		for _, w := range wants {
			known = known || strings.Contains(line, w.place)
		}
		if !known {
			stray = append(stray, line)
		}
	}
	return strings.Join(stray, "\n")
}
