package e2e

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// haproxyExample is the configuration that operators are given.
const haproxyExample = "../../deploy/haproxy/queen-edge.cfg"

// needHAProxy finds HAProxy. QE_REQUIRE turns a missing one from a skip into a
// failure.
func needHAProxy(t *testing.T) string {
	t.Helper()
	// Debian has it where only root looks.
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("QE_REQUIRE") != "" {
		t.Fatal("haproxy is required and not installed (Debian: apt-get install haproxy)")
	}
	t.Skip("haproxy is not installed (Debian: apt-get install haproxy)")
	return ""
}

// haproxy is a process of it.
type haproxy struct {
	t      *testing.T
	binary string
	stats  string // path of the socket that says how the servers are
	env    []string
	fronts []*os.File
	said   *locked
	stop   func() // ends it, connections and all
}

// locked is a buffer that a process writes and a test reads.
type locked struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newHAProxy(t *testing.T) *haproxy {
	t.Helper()
	binary := needHAProxy(t)
	dir, err := os.MkdirTemp("", "qe-ha") // a socket's path may be short only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return &haproxy{t: t, binary: binary, stats: filepath.Join(dir, "stats"), said: &locked{}}
}

// set gives the configuration a variable.
func (h *haproxy) set(name, value string) { h.env = append(h.env, name+"="+value) }

// front is an address at which HAProxy will listen, under a variable's name. It
// is open already, so that gateways can name it before HAProxy knows them.
func (h *haproxy) front(name string) (addr string) {
	h.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := ln.Close(); err != nil { // f keeps it open
		h.t.Fatal(err)
	}
	h.fronts = append(h.fronts, f)
	h.set(name, fmt.Sprintf("fd@%d", 2+len(h.fronts)))
	return fmt.Sprintf("%s:%d", rig.Host, ln.Addr().(*net.TCPAddr).Port)
}

// start runs HAProxy on configurations, after one of the test's own with a socket
// that tells how the servers are. The end of the test ends it, if nothing did.
func (h *haproxy) start(configs ...string) {
	h.t.Helper()
	own := filepath.Join(filepath.Dir(h.stats), "own.cfg")
	if err := os.WriteFile(own, []byte("global\n\tlog stdout format raw daemon\n\tstats socket "+h.stats+"\n"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	args := []string{"-db", "-f", own}
	for _, c := range configs {
		args = append(args, "-f", c)
	}
	cmd := exec.Command(h.binary, args...)
	cmd.Env, cmd.ExtraFiles = h.env, h.fronts
	cmd.Stdout, cmd.Stderr = h.said, h.said
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	for _, f := range h.fronts {
		_ = f.Close()
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	h.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	h.t.Cleanup(func() {
		h.stop()
		if h.t.Failed() {
			h.t.Logf("HAProxy said:\n%s", tail(h.said.String()))
		}
	})
	rig.Eventually(h.t, "HAProxy's socket", func() bool {
		select {
		case err := <-ended:
			ended <- err
			h.t.Fatalf("HAProxy has ended: %v\n%s", err, h.said)
		default:
		}
		conn, err := net.Dial("unix", h.stats)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// servers are the rows of HAProxy's statistics, by backend/server.
func (h *haproxy) servers() map[string]map[string]string {
	h.t.Helper()
	conn, err := new(net.Dialer).DialContext(context.Background(), "unix", h.stats)
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // read whole
	if _, err := io.WriteString(conn, "show stat\n"); err != nil {
		h.t.Fatal(err)
	}
	rows, err := csv.NewReader(conn).ReadAll()
	if err != nil || len(rows) == 0 {
		h.t.Fatalf("HAProxy's statistics: %d rows, %v", len(rows), err)
	}
	names, out := rows[0], map[string]map[string]string{}
	names[0] = strings.TrimPrefix(names[0], "# ")
	for _, row := range rows[1:] {
		fields := map[string]string{}
		for i, name := range names {
			fields[name] = row[i]
		}
		out[fields["pxname"]+"/"+fields["svname"]] = fields
	}
	return out
}

// await waits until a server is what it should be, and returns what its last
// check saw.
func (h *haproxy) await(server, status string) (check string) {
	h.t.Helper()
	rig.Eventually(h.t, "HAProxy to have "+server+" "+status, func() bool {
		row, ok := h.servers()[server]
		if !ok {
			h.t.Fatalf("HAProxy has no %s", server)
		}
		check = row["check_status"] + " " + row["check_code"]
		return row["status"] == status
	})
	return check
}
