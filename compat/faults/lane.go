package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// maxFrame is more than any frame here has: the lane only reads what its own
// programs and gateways say.
const maxFrame = 64 << 20

// produceKey is the API whose requests a lane counts.
const produceKey = 0

// lane is the address that clients know: a TCP forwarder that can be switched
// from one gateway to another, and cut. It reads frames, so that it can tell how
// many Produce requests wait for their answer, and hold a request.
type lane struct {
	ln net.Listener
	wg sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	to      string
	open    map[net.Conn]struct{}
	waiting map[*passage]int // Produce requests without an answer
	behind  chan struct{}    // closed when waiting changes
	holds   map[int16]func() // by API: what to do before the next request of it goes on
	closed  bool
}

func startLane() (*lane, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &lane{ln: ln, open: make(map[net.Conn]struct{}), waiting: make(map[*passage]int), behind: make(chan struct{}), holds: make(map[int16]func())}
	l.wg.Add(1)
	go l.accept()
	return l, nil
}

func (l *lane) addr() string { return l.ln.Addr().String() }

// point sends new connections to a gateway.
func (l *lane) point(addr string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = addr
}

// hold keeps the next request of an API from its gateway until meanwhile has
// returned.
func (l *lane) hold(api int16, meanwhile func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[api] = meanwhile
}

// release drops what is not held yet.
func (l *lane) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.holds)
}

// held is what to do before a request goes on; nil: nothing.
func (l *lane) held(api int16) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	meanwhile := l.holds[api]
	delete(l.holds, api)
	return meanwhile
}

// cut ends every connection, whatever is under way on it.
func (l *lane) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Close()
	}
}

func (l *lane) close() {
	_ = l.ln.Close()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cut()
	l.wg.Wait()
}

// pipelined is how many Produce requests of the connection that has most of them
// wait for their answer.
func (l *lane) pipelined() (most int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.waiting {
		most = max(most, n)
	}
	return most, l.behind
}

// await waits until so many Produce requests are under way, or for so long, and
// returns how many there are.
func (l *lane) await(n int, patience time.Duration) int {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		most, changed := l.pipelined()
		if most >= n {
			return most
		}
		select {
		case <-changed:
		case <-timer.C:
			return most
		}
	}
}

func (l *lane) accept() {
	defer l.wg.Done()
	for {
		c, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.wg.Add(1)
		go l.carry(c)
	}
}

// passage is one client's connection through the lane.
type passage struct {
	lane    *lane
	client  net.Conn
	gateway net.Conn

	mu    sync.Mutex // guards asked
	asked map[int32]struct{}
}

func (l *lane) carry(client net.Conn) {
	defer l.wg.Done()
	defer client.Close()
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	gateway, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer gateway.Close()
	if !l.enter(client, gateway) {
		return
	}
	p := &passage{lane: l, client: client, gateway: gateway, asked: make(map[int32]struct{})}
	defer l.leave(p)
	l.wg.Add(1)
	go p.requests()
	p.answers()
}

func (p *passage) requests() {
	defer p.lane.wg.Done()
	defer p.gateway.Close()
	_ = frames(p.gateway, p.client, func(frame []byte) {
		if len(frame) < 8 {
			return
		}
		api := int16(binary.BigEndian.Uint16(frame))
		if api == produceKey {
			p.note(int32(binary.BigEndian.Uint32(frame[4:])), true)
		}
		if meanwhile := p.lane.held(api); meanwhile != nil {
			meanwhile()
		}
	})
}

func (p *passage) answers() {
	defer p.client.Close()
	_ = frames(p.client, p.gateway, func(frame []byte) {
		if len(frame) >= 4 {
			p.note(int32(binary.BigEndian.Uint32(frame)), false)
		}
	})
}

// note counts a Produce request, or the answer to one.
func (p *passage) note(correlation int32, request bool) {
	p.mu.Lock()
	_, produce := p.asked[correlation]
	if request {
		p.asked[correlation] = struct{}{}
	} else {
		delete(p.asked, correlation)
	}
	n := len(p.asked)
	p.mu.Unlock()
	if request || produce {
		p.lane.count(p, n)
	}
}

func (l *lane) count(p *passage, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[p] = n
	close(l.behind)
	l.behind = make(chan struct{})
}

func (l *lane) enter(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.open[c] = struct{}{}
	}
	return !l.closed
}

func (l *lane) leave(p *passage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, p.client)
	delete(l.open, p.gateway)
	delete(l.waiting, p)
}

// frames carries frames until either side ends.
func frames(to io.Writer, from io.Reader, look func(frame []byte)) error {
	buf := make([]byte, 4, 64<<10)
	for {
		if _, err := io.ReadFull(from, buf[:4]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(buf))
		if n < 0 || n > maxFrame {
			return fmt.Errorf("a frame of %d bytes", n)
		}
		if cap(buf) < n+4 {
			buf = append(make([]byte, 0, n+4), buf[:4]...)
		}
		buf = buf[:n+4]
		if _, err := io.ReadFull(from, buf[4:]); err != nil {
			return err
		}
		look(buf[4:])
		if _, err := to.Write(buf); err != nil {
			return err
		}
	}
}
