package ports

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// from is a dialer whose connections are to get a port of one as their own, as
// the system would choose it.
func from(port int) *net.Dialer {
	const ipLocalPortRange = 51
	return &net.Dialer{Timeout: time.Minute, Control: func(_, _ string, c syscall.RawConn) (err error) {
		outer := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, ipLocalPortRange, port|port<<16)
		})
		return errors.Join(outer, err)
	}}
}

// take opens a connection whose own port can be none but this one, and closes it:
// nobody may listen on the port for a minute.
func take(port int, to string) error {
	conn, err := from(port).Dial("tcp", to)
	if err != nil {
		return err
	}
	return conn.Close()
}

// No client gets a port that is kept, neither before its server starts nor
// between two of its lives, and the server gets it each time. One that is merely
// remembered is lost so.
func TestKeep(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	remembered, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = remembered.Close()
	if err := take(remembered.Addr().(*net.TCPAddr).Port, other.Addr().String()); errors.Is(err, syscall.ENOPROTOOPT) {
		t.Skip("this kernel chooses from one range for all")
	} else if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Listen("tcp", remembered.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("to listen on a client's port: %v", err)
	}

	p, err := Keep()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // nobody needs it any more
	for range 3 {
		if err := take(p.Number(), other.Addr().String()); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Fatalf("a client that may have port %d alone: %v, want that there is none", p.Number(), err)
		}
		if conn, err := net.Dial("tcp", p.Addr()); err == nil {
			t.Fatalf("somebody listens at %s: %v", p.Addr(), conn.Close())
		}
		ln, err := p.Listen()
		if err != nil {
			t.Fatal(err)
		}
		visit(t, ln)
	}
}

// visit dials ln, which hangs up first and then ends, as a server that is
// stopped.
func visit(t *testing.T, ln net.Listener) {
	t.Helper()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	served, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(served.Close(), ln.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatal("read something")
	}
}
