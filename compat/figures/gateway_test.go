package figures

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	demoproc "github.com/queen-mq/queen-edge/compat/demo"
)

// gateway is one in a process of its own, before a demo's cell.
type gateway struct {
	*demoproc.Gateway
	load string // the program of the clients
	cell *demo
}

// before starts a gateway before a demo's cell, with more of its settings.
func (d *demo) before(b *testing.B, settings ...string) *gateway {
	b.Helper()
	dir := b.TempDir()
	g := &gateway{load: filepath.Join(dir, "load"), cell: d}
	buildLoad(b, g.load)
	var err error
	g.Gateway, err = demoproc.StartGateway(d.program, dir, d.env["QUEEN_EDGE_CELL_URL"], settings...)
	must(b, err)
	b.Cleanup(func() {
		if err := g.Stop(); err != nil {
			b.Errorf("gateway: %v", err)
		}
	})
	return g
}

// client is a running load.
type client struct {
	b    *testing.B
	cmd  *exec.Cmd
	in   io.WriteCloser
	says *bufio.Scanner
}

// client starts a load as one of the demo's tenants.
func (g *gateway) client(b *testing.B, tenant, role string, n int, more ...string) *client {
	b.Helper()
	return run(b, g.load, append([]string{
		"-role", role, "-addr", g.Addr, "-ca", g.CA, "-n", strconv.Itoa(n),
		"-token", g.cell.env["QUEEN_EDGE_TOKEN_"+tenant],
	}, more...)...)
}

// cheap starts a cell before the demo's that costs next to nothing, and returns its
// URL.
func (d *demo) cheap(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "load")
	buildLoad(b, program)
	c := run(b, program, "-role", "cell", "-behind", d.env["QUEEN_EDGE_CELL_URL"])
	b.Cleanup(func() { c.end() })
	return c.line()
}

func buildLoad(b *testing.B, program string) {
	b.Helper()
	build := exec.Command("go", "build", "-o", program, "github.com/queen-mq/queen-edge/compat/figures/load")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
}

// run starts a program of clients.
func run(b *testing.B, program string, args ...string) *client {
	b.Helper()
	c := &client{b: b, cmd: exec.Command(program, args...)}
	c.cmd.Stderr = os.Stderr
	var err error
	c.in, err = c.cmd.StdinPipe()
	must(b, err)
	out, err := c.cmd.StdoutPipe()
	must(b, err)
	c.says = bufio.NewScanner(out)
	must(b, c.cmd.Start())
	return c
}

// line is what it writes next.
func (c *client) line() string {
	c.b.Helper()
	if !c.says.Scan() {
		c.b.Fatalf("the load has ended: %v", c.cmd.Wait())
	}
	return c.says.Text()
}

// end tells it to stop; what it still writes is returned.
func (c *client) end() []string {
	c.b.Helper()
	must(c.b, c.in.Close())
	var lines []string
	for c.says.Scan() {
		lines = append(lines, c.says.Text())
	}
	if err := c.cmd.Wait(); err != nil {
		c.b.Fatal(err)
	}
	return lines
}

// metric is one of the gateway's, by its whole name.
func (g *gateway) metric(b *testing.B, name string) float64 {
	b.Helper()
	v, err := g.Metric(b.Context(), name)
	must(b, err)
	return v
}

// descriptors is how many the gateway has open.
func (g *gateway) descriptors(b *testing.B) int {
	b.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.PID))
	must(b, err)
	return len(open)
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// cpu is how many seconds of a processor a process has used.
func cpu(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	_, after, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(after)
	user, err := strconv.ParseFloat(f[11], 64)
	must(b, err)
	system, err := strconv.ParseFloat(f[12], 64)
	must(b, err)
	return (user + system) / 100
}
