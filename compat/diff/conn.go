package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/faults/window"
)

// answerDeadline is how long a side may take for one answer.
const answerDeadline = 20 * time.Second

// forgotten is how long an answer is waited for that one side may never give.
const forgotten = 3 * time.Second

// side is one of the two servers.
type side struct {
	name string
	port int
	cell window.Cell // ours: what it keeps its topics in
}

// conn is a raw connection to a side.
type conn struct {
	net.Conn
	next  int32
	known topicIDs
}

func (s side) dial(ctx context.Context) (*conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// What became of a request.
const (
	answered = "answered"
	closed   = "closed"      // the connection ended without an answer
	silent   = "no answer"   // and the connection lives on
	garbled  = "undecodable" // an answer that kmsg cannot read
)

// reply is what a side did with a request.
type reply struct {
	outcome string
	resp    kmsg.Response // when answered
	detail  string        // when garbled
}

// exchange sends a request and takes what comes.
func (c *conn) exchange(s step) reply {
	sent, ok := c.send(s)
	if !ok {
		return reply{outcome: closed}
	}
	return c.receive(sent)
}

// sent is a request on its way.
type sent struct {
	step
	id int32
}

// send sends a request. Where no answer may come at all, a ping behind it tells
// that from a late one. It is not ok where the connection has ended.
func (c *conn) send(s step) (sent, bool) {
	s.req = c.identify(s.req)
	c.next++
	id := c.next
	out := s.frame(id)
	if s.mute {
		c.next++
		out = append(out, pingFrame(c.next)...)
	}
	if err := c.SetDeadline(time.Now().Add(answerDeadline)); err != nil {
		return sent{}, false
	}
	_, err := c.Write(out)
	return sent{s, id}, err == nil
}

// receive takes what comes of a request.
func (c *conn) receive(s sent) reply {
	deadline := answerDeadline
	if s.slow {
		deadline = forgotten
	}
	if err := c.SetDeadline(time.Now().Add(deadline)); err != nil {
		return reply{outcome: closed}
	}
	b, err := c.readFrame()
	if err != nil {
		return ended(err)
	}
	if s.mute {
		if len(b) >= 4 && int32(binary.BigEndian.Uint32(b)) == c.next {
			return reply{outcome: silent}
		}
		if _, err := c.readFrame(); err != nil {
			return reply{outcome: garbled, detail: "answered and then closed"}
		}
	}
	r := decode(s.step, s.id, b)
	c.name(r.resp)
	return r
}

func ended(err error) reply {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return reply{outcome: silent}
	}
	return reply{outcome: closed}
}

// decode reads an answer at the version of its request. An ApiVersions answer
// with error 35 has the shape of version 0 (KIP-511).
func decode(s step, id int32, b []byte) reply {
	if len(b) < 4 || int32(binary.BigEndian.Uint32(b)) != id {
		return reply{outcome: garbled, detail: "another correlation id"}
	}
	b = b[4:]
	if s.req == nil {
		return reply{outcome: answered, resp: nil}
	}
	resp := s.req.ResponseKind()
	if resp.Key() == apiVersionsKey && len(b) >= 2 && binary.BigEndian.Uint16(b) == 35 {
		resp.SetVersion(0)
	}
	if resp.IsFlexible() && resp.Key() != apiVersionsKey {
		if len(b) == 0 || b[0] != 0 {
			return reply{outcome: garbled, detail: "tags in the response's header"}
		}
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		return reply{outcome: garbled, detail: err.Error()}
	}
	return reply{outcome: answered, resp: resp}
}

// readFrame reads one frame: what follows its length.
func (c *conn) readFrame() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > 128<<20 {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	return b, err
}

const apiVersionsKey = 18

func pingFrame(id int32) []byte {
	return frameOf(kmsg.NewPtrApiVersionsRequest(), id)
}

// ping asks for the API versions, which every side answers at any time.
func (c *conn) ping() error {
	r := c.exchange(step{req: kmsg.NewPtrApiVersionsRequest()})
	if r.outcome != answered {
		return fmt.Errorf("ApiVersions: %s %s", r.outcome, r.detail)
	}
	return nil
}

// frameOf makes the frame of a request at its version.
func frameOf(req kmsg.Request, id int32) []byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("diff"))
	return f.AppendRequest(nil, req, id)
}

// sized makes the length prefix of a frame true.
func sized(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}
