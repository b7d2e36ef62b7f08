package rig

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Relay carries bytes between gateway and cell until it is told to break. Use
// it as Options.CellAt.
type Relay struct {
	URL string // of the relay

	cell string // host:port
	ln   net.Listener
	wg   sync.WaitGroup

	losing atomic.Pointer[string] // path whose next answer is to be lost
	lost   atomic.Int64           // answers lost

	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]struct{}
	closed bool
}

// StartRelay stands a relay before a cell, until the test ends.
func StartRelay(tb testing.TB, cellURL string) *Relay {
	tb.Helper()
	ln := listen(tb, anyPort)
	r := &Relay{
		URL: "http://" + ln.Addr().String(), cell: strings.TrimPrefix(cellURL, "http://"),
		ln: ln, open: make(map[net.Conn]struct{}),
	}
	r.wg.Add(1)
	go r.accept()
	tb.Cleanup(r.close)
	return r
}

// Cut breaks every connection there is, whatever is under way on it.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		_ = c.Close()
	}
}

func (r *Relay) close() {
	_ = r.ln.Close()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.Cut()
	r.wg.Wait()
}

func (r *Relay) accept() {
	defer r.wg.Done()
	for {
		c, err := r.ln.Accept()
		if err != nil {
			return
		}
		r.wg.Add(1)
		go r.carry(c)
	}
}

// carry copies both ways until either side ends.
func (r *Relay) carry(gateway net.Conn) {
	defer r.wg.Done()
	defer gateway.Close()
	cell, err := net.Dial("tcp", r.cell)
	if err != nil {
		return
	}
	defer cell.Close()
	if !r.enter(gateway, cell) {
		return
	}
	defer r.leave(gateway, cell)
	var lose atomic.Bool // the next answer on this connection
	back := make(chan struct{})
	go func() {
		defer close(back)
		r.answers(gateway, cell, &lose)
	}()
	r.requests(cell, gateway, &lose)
	<-back
}

// requests carries what the gateway asks. A request begins a read: the gateway
// asks nothing before it has its answer.
func (r *Relay) requests(cell, gateway net.Conn, lose *atomic.Bool) {
	defer cell.Close()
	b := make([]byte, relayBuffer)
	for {
		n, err := gateway.Read(b)
		if n > 0 && r.wanted(b[:n]) {
			lose.Store(true)
		}
		if _, werr := cell.Write(b[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (r *Relay) answers(gateway, cell net.Conn, lose *atomic.Bool) {
	defer gateway.Close()
	b := make([]byte, relayBuffer)
	for {
		n, err := cell.Read(b)
		if n > 0 && lose.Load() {
			r.lost.Add(1)
			return
		}
		if _, werr := gateway.Write(b[:n]); err != nil || werr != nil {
			return
		}
	}
}

// wanted takes the order to lose an answer if this is the request it is about.
func (r *Relay) wanted(b []byte) bool {
	path := r.losing.Load()
	return path != nil && bytes.HasPrefix(b, []byte("POST "+*path+" ")) && r.losing.CompareAndSwap(path, nil)
}

const relayBuffer = 32 << 10

// LoseAnswer has the next call of a path done and its answer lost with the
// connection, and waits for that.
func (r *Relay) LoseAnswer(tb testing.TB, path string) {
	tb.Helper()
	lost := r.lost.Load()
	r.losing.Store(&path)
	Eventually(tb, "the loss of an answer", func() bool { return r.lost.Load() > lost })
}

func (r *Relay) enter(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		r.open[c] = struct{}{}
	}
	return !r.closed
}

func (r *Relay) leave(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.open, c)
	}
}
