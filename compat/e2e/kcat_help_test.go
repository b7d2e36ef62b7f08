package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// kcatPatience is for one run of kcat: a large file takes its time on a machine
// that does other things.
const kcatPatience = 5 * time.Minute

// kcatBinary is the distribution's kcat.
type kcatBinary string

// needKcat finds kcat. QE_REQUIRE turns a missing one from a skip into a failure.
func needKcat(t *testing.T) kcatBinary {
	t.Helper()
	path, err := exec.LookPath("kcat")
	if err != nil {
		if os.Getenv("QE_REQUIRE") != "" {
			t.Fatal("kcat is required and not installed (Debian: apt-get install kcat)")
		}
		t.Skip("kcat is not installed (Debian: apt-get install kcat)")
	}
	return kcatBinary(path)
}

// kcatLogin is kcat with the configuration of one key.
type kcatLogin struct {
	t      *testing.T
	binary string
	config string
}

// as writes the configuration file of a key: a token on a command line could be
// read by every user of the machine.
func (k kcatBinary) as(t *testing.T, r *rig.Rig, key string) *kcatLogin {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kcat.conf")
	text := fmt.Sprintf("bootstrap.servers=%s\nsecurity.protocol=SASL_SSL\nsasl.mechanisms=PLAIN\n"+
		"sasl.username=%s\nsasl.password=%s\nssl.ca.location=%s\n", r.Addr, key, r.Key(key), r.CAFile)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &kcatLogin{t: t, binary: string(k), config: path}
}

// run runs kcat, which must succeed, and returns what it prints.
func (k *kcatLogin) run(in io.Reader, args ...string) (stdout, stderr string) {
	k.t.Helper()
	var out bytes.Buffer
	stderr = k.exec(in, &out, args)
	return out.String(), stderr
}

// stream runs kcat and writes what it prints to out.
func (k *kcatLogin) stream(out io.Writer, args ...string) {
	k.t.Helper()
	k.exec(nil, out, args)
}

func (k *kcatLogin) exec(in io.Reader, out io.Writer, args []string) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), kcatPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.binary, append([]string{"-F", k.config}, args...)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &stderr
	if err := cmd.Run(); err != nil {
		k.t.Fatalf("kcat %v: %v\n%s", args, err, tail(stderr.String()))
	}
	return stderr.String()
}

// tail is the end of a text that may be long.
func tail(s string) string {
	const most = 4000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}
