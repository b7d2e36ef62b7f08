package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// clientID is what the gateway's log knows the doctor by.
const clientID = "queen-edge-doctor"

// maxFrame bounds an answer, in bytes: a listing of 200,000 partitions fits.
const maxFrame = 64 << 20

// peer is a connection that is being examined. One request is under way at a
// time.
type peer struct {
	net.Conn
	at      address // as it was told
	ip      string  // that was dialled
	next    int32
	offered map[int16]window
	spoilt  bool // an answer is missing: nothing that comes can be told apart
}

// window are the versions of an API that the peer takes.
type window struct{ min, max int16 }

func (p *peer) close() { _ = p.Conn.Close() }

// errShape is an answer that no Kafka broker gives.
var errShape = errors.New("what came is no answer of a Kafka broker")

// errVersion is an API that the peer does not take at the doctor's version.
var errVersion = errors.New("not offered by the peer")

// ask sends a request and reads its answer, before ctx ends. All requests here
// are of versions older than the flexible ones, which every broker of today and
// of ten years ago takes.
func (p *peer) ask(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	if w, known := p.offered[req.Key()]; p.offered != nil && (!known || req.GetVersion() < w.min || req.GetVersion() > w.max) {
		return nil, fmt.Errorf("%s %d: %w", kmsg.NameForKey(req.Key()), req.GetVersion(), errVersion)
	}
	stop := p.until(ctx)
	defer stop()
	resp, err := p.exchange(req)
	if err != nil {
		p.spoilt = true
		return nil, because(ctx, err)
	}
	return resp, nil
}

func (p *peer) exchange(req kmsg.Request) (kmsg.Response, error) {
	p.next++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, req, p.next)
	if _, err := p.Write(frame); err != nil {
		return nil, err
	}
	body, err := p.readFrame()
	if err != nil {
		return nil, err
	}
	if len(body) < 4 || int32(binary.BigEndian.Uint32(body)) != p.next {
		return nil, errShape
	}
	resp := req.ResponseKind()
	if err := resp.ReadFrom(body[4:]); err != nil {
		return nil, errShape
	}
	return resp, nil
}

// until makes reads and writes end with ctx; after the function it gives they
// do not any more.
func (p *peer) until(ctx context.Context) (stop func()) {
	deadline, _ := ctx.Deadline()
	_ = p.SetDeadline(deadline)
	cut := make(chan struct{})
	lift := context.AfterFunc(ctx, func() {
		_ = p.SetDeadline(time.Unix(1, 0))
		close(cut)
	})
	return func() {
		if !lift() {
			<-cut // or it would strike what comes next
		}
	}
}

// because says that an interrupted run was interrupted, not slow.
func because(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	return err
}

// readFrame reads what follows a frame's length. Memory grows with what comes,
// not with what is announced.
func (p *peer) readFrame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(p, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return nil, errShape
	}
	body, err := io.ReadAll(io.LimitReader(p, int64(size)))
	if err == nil && len(body) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	return body, err
}

// httpPatience is how long a peer that has not answered may take to show that it
// speaks HTTP.
const httpPatience = time.Second

// speaksHTTP ends a request line that a web server may be waiting for the end
// of, and looks at what comes.
func (p *peer) speaksHTTP() bool {
	_ = p.SetDeadline(time.Now().Add(httpPatience))
	var head [5]byte
	if _, err := p.Write([]byte("\r\n\r\n")); err != nil {
		return false
	}
	_, err := io.ReadFull(p, head[:])
	return err == nil && string(head[:]) == "HTTP/"
}

// isClosed reports that the peer ended the connection.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
