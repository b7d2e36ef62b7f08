package edge

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/proxyclient"
)

// keptListener hands out what it accepts to a test as well.
type keptListener struct {
	net.Listener
	accepted chan net.Conn
}

func (l keptListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- nc
	}
	return nc, err
}

// An accepted socket probes its silent peer sooner than common middleboxes
// forget the connection: AWS's network balancer after 350 s, Azure's after 240.
func TestKeepAlive(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cell, err := proxyclient.New(proxyclient.Config{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer cell.Close()
	cfg := config.Defaults()
	cfg.Advertised = config.Addr{Host: "localhost", Port: 9092}
	srv := New(Options{Config: cfg, Cell: cell})
	ln := keptListener{inner, make(chan net.Conn, 1)}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, ln) }()

	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	raw, err := (<-ln.accepted).(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(level, name int) (value int) {
		if err := raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), level, name) }); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for srv.Connections() == 0 { // set up by then
		<-tick.C
	}
	if option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) != 1 {
		t.Error("keep-alive is off")
	}
	idle := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE)
	interval := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL)
	count := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT)
	if idle != 60 || interval != 15 || count != 4 {
		t.Errorf("after %d s, %d probes every %d s; want 60, 4 and 15", idle, count, interval)
	}
	_ = client.Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
