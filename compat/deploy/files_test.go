package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// dockerfile splits a Dockerfile into instructions; what it does not know fails.
func dockerfile(t *testing.T, text string) (out [][2]string) {
	t.Helper()
	known := []string{"FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if !slices.Contains(known, word) || rest == "" {
			t.Errorf("no instruction: %s", line)
		}
		out = append(out, [2]string{word, strings.TrimSpace(rest)})
	}
	return out
}

// The image is the static binary alone, run by nobody in particular, on a base
// without a shell, and made with a Go that can build it.
func TestDockerfile(t *testing.T) {
	steps := dockerfile(t, read(t, dir+"docker/Dockerfile"))
	var bases []string
	last := map[string]string{}
	for _, s := range steps {
		if s[0] == "FROM" {
			bases = append(bases, s[1])
		}
		last[s[0]] = s[1]
	}
	if len(bases) != 2 || !strings.HasSuffix(bases[0], " AS build") || !strings.Contains(bases[1], "/distroless/static-debian12:nonroot") {
		t.Fatalf("bases %q", bases)
	}
	if got, want := matches(`golang:(\d+\.\d+)`, bases[0]), matches(`(?m)^go (\d+\.\d+)`, read(t, "../../go.mod")); !slices.Equal(got, want) {
		t.Errorf("it is made with Go %q, the module wants %q", got, want)
	}
	if uid, _, _ := strings.Cut(last["USER"], ":"); uid == "0" || !regexp.MustCompile(`^\d+$`).MatchString(uid) {
		t.Errorf("it runs as %q: Kubernetes knows a number only to be no root", last["USER"])
	}
	if !strings.Contains(last["RUN"], "CGO_ENABLED=0 go build") || !strings.HasSuffix(last["RUN"], " -o /out/queen-edge ./cmd/queen-edge") {
		t.Errorf("it is built by %q", last["RUN"])
	}
	var entry, args []string
	if json.Unmarshal([]byte(last["ENTRYPOINT"]), &entry) != nil || json.Unmarshal([]byte(last["CMD"]), &args) != nil {
		t.Errorf("not in exec form: %s %s", last["ENTRYPOINT"], last["CMD"]) // a shell that is not there would get the signals
	}
	if last["COPY"] != "--from=build /out/queen-edge "+strings.Join(entry, "") || !slices.Equal(args, []string{"serve"}) {
		t.Errorf("COPY %s, then %q %q", last["COPY"], entry, args)
	}
}

// unitSettings are those of an environment file.
func unitSettings(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			out[name] = value
		}
	}
	return out
}

func TestUnit(t *testing.T) {
	unit := read(t, dir+"systemd/queen-edge.service")
	env := unitSettings(read(t, dir+"systemd/queen-edge.env"))
	wantSettings(t, "queen-edge.env", slices.Collect(maps.Keys(env)), false)
	legal(t, "queen-edge.env", env)
	for _, want := range []string{"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "MemoryDenyWriteExecute=yes", "CapabilityBoundingSet=", "SystemCallFilter=@system-service"} {
		if !strings.Contains(unit, "\n"+want+"\n") {
			t.Errorf("the unit lacks %s", want)
		}
	}
	for _, name := range matches(`/run/credentials/queen-edge.service/(\S+)`, read(t, dir+"systemd/queen-edge.env")) {
		if !strings.Contains(unit, "\nLoadCredential="+name+":") {
			t.Errorf("the unit does not load %s", name)
		}
	}
}

// systemd reads the unit and finds nothing to say about it. The program need not
// be installed: the test's own stands for it.
func TestUnitBySystemd(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "queen-edge.service")
	unit := strings.ReplaceAll(read(t, dir+"systemd/queen-edge.service"), "/usr/local/bin/queen-edge", self)
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, ".", analyze, "verify", "--man=no", path)
	run(t, ".", analyze, "security", "--offline=true", "--no-pager", "--threshold=20", path)
}

// seconds of a setting in milliseconds.
func seconds(t *testing.T, ms string) int {
	t.Helper()
	n, err := strconv.Atoi(ms)
	if err != nil {
		t.Fatal(err)
	}
	return n / 1000
}
