package figures

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// BenchmarkLogin is what logins cost with a token seen before, beside crypto/tls
// with an echo, in rounds of both in turns. Gateway and echo share a process, so
// that the collector asks the same of both; the client is another one.
func BenchmarkLogin(b *testing.B) {
	const rounds, logins = 5, 1500
	program := filepath.Join(b.TempDir(), "load")
	buildLoad(b, program)
	r := rig.Start(b)
	gateway := []string{"-addr", r.Addr, "-token", r.Key(rig.Acme)}
	echo := []string{"-addr", serveEcho(b, &tls.Config{Certificates: []tls.Certificate{r.Certificate(b)}}), "-echo"}
	for b.Loop() {
		of := map[bool]*loginCosts{false: {}, true: {}} // by whether it is the echo
		for i := range rounds {
			for _, bare := range [][]bool{{false, true}, {true, false}}[i%2] {
				args := gateway
				if bare {
					args = echo
				}
				c := run(b, program, append([]string{"-role", "logins", "-ca", r.CAFile, "-n", strconv.Itoa(logins)}, args...)...)
				of[bare].measure(b, c, logins)
			}
		}
		of[false].report(b, of[true])
	}
	b.ReportMetric(0, "ns/op")
}

// loginCosts are what a login cost, in each of the rounds.
type loginCosts struct{ server, client, rate, allocs, bytes []float64 }

// measure lets the client work and looks at this process meanwhile.
func (l *loginCosts) measure(b *testing.B, c *client, logins float64) {
	b.Helper()
	if c.line() != "ready" {
		b.Fatal("the client is not ready")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used := processor(b)
	said := c.end()
	used = processor(b) - used
	runtime.ReadMemStats(&after)
	var took, clientUsed float64
	if _, err := fmt.Sscan(said[0], &took, &clientUsed); err != nil {
		b.Fatal(err)
	}
	l.server = append(l.server, 1e6*used/logins)
	l.client = append(l.client, 1e6*clientUsed/logins)
	l.rate = append(l.rate, logins/took)
	l.allocs = append(l.allocs, float64(after.Mallocs-before.Mallocs)/logins)
	l.bytes = append(l.bytes, float64(after.TotalAlloc-before.TotalAlloc)/logins)
}

func (l *loginCosts) report(b *testing.B, bare *loginCosts) {
	b.Helper()
	for _, m := range []struct {
		unit       string
		ours, bare []float64
	}{
		{"server-us", l.server, bare.server},
		{"client-us", l.client, bare.client},
		{"logins/s", l.rate, bare.rate},
		{"allocs", l.allocs, bare.allocs},
		{"B", l.bytes, bare.bytes},
	} {
		ratios := make([]float64, len(m.ours))
		for i := range ratios {
			ratios[i] = m.ours[i] / m.bare[i]
		}
		b.ReportMetric(median(slices.Clone(m.ours)), m.unit)
		b.ReportMetric(median(slices.Clone(m.bare)), "bare-"+m.unit)
		b.ReportMetric(median(ratios), "ratio-"+m.unit)
	}
}

// processor is how many seconds of a processor this process has used.
func processor(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// serveEcho is crypto/tls and nothing more: it answers every frame with itself. It
// returns its address.
func serveEcho(b *testing.B, cfg *tls.Config) string {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	ended := make(chan struct{})
	b.Cleanup(func() {
		_ = ln.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go echoFrames(tls.Server(nc, cfg))
		}
	}()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	must(b, err)
	return net.JoinHostPort(rig.Host, port)
}

func echoFrames(c net.Conn) {
	defer c.Close() //nolint:errcheck // the client has closed
	var head [4]byte
	for {
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(head[:]))
		copy(frame, head[:])
		if _, err := io.ReadFull(c, frame[4:]); err != nil {
			return
		}
		if _, err := c.Write(frame); err != nil {
			return
		}
	}
}
