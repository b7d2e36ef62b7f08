package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/queen-mq/queen-edge/edge/config"
)

const dir = "../../deploy/"

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tool finds a program. Where it must be there (QE_REQUIRE=1) its lack fails.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("QE_REQUIRE") != "" {
			t.Fatalf("%s is not here", name)
		}
		t.Skipf("%s is not here", name)
	}
	return path
}

func run(t *testing.T, in, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// documents are those of a YAML file, each strictly of T.
func documents[T any](t *testing.T, path string) []T {
	t.Helper()
	dec := yaml.NewDecoder(bytes.NewBufferString(read(t, path)))
	dec.KnownFields(true)
	var out []T
	for {
		var v T
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, v)
	}
}

// wantSettings: every QUEEN_ variable that a file sets is one that is read. later
// are those of docs/CONFIGURATION.md that a version to come reads.
func wantSettings(t *testing.T, path string, names []string, later bool) {
	t.Helper()
	if len(names) == 0 {
		t.Errorf("%s sets nothing", path)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "QUEEN_") {
			continue
		}
		if slices.ContainsFunc(config.Settings(), func(s config.Setting) bool { return s.Name == name }) {
			continue
		}
		if !later || !strings.Contains(read(t, "../../docs/CONFIGURATION.md"), "\n* `"+name+"`\n") {
			t.Errorf("%s sets %s, which nobody reads", path, name)
		}
	}
}

// legal: what a file sets is a configuration that the program starts with.
func legal(t *testing.T, path string, settings map[string]string) {
	t.Helper()
	if _, err := config.FromLookup(func(name string) (string, bool) { v, ok := settings[name]; return v, ok }); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

func matches(pattern, text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}
