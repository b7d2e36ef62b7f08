package noninterference

import (
	"encoding/binary"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// clientID is the same on both sides.
const clientID = "app"

// client is one tenant's client: its connection, what it has learned, and what
// it was answered.
type client struct {
	world *world
	slug  string // of its cluster
	key   string // text
	keyID control.UUID

	neighbour *client   // whose ids it knows, if it wants to
	hoard     []*client // its other connections
	hoards    int       // how often it has taken groups

	link     *link
	out      *transcript
	counted  *counts
	topics   [2]topic
	groups   [2]group
	txns     [2]txn
	producer producer
	session  session
}

// link is a connection.
type link struct {
	net.Conn
	world *world
	next  int32
}

func (w *world) dial() (*link, error) {
	conn, err := net.DialTimeout("tcp", w.rig.Addr, rig.Patience)
	if err != nil {
		return nil, err
	}
	w.open++
	return &link{Conn: conn, world: w}, nil
}

// hangUp ends a connection and waits until the gateway has forgotten it, so that
// none of a tenant's is ever one too many.
func (w *world) hangUp(l *link) {
	_ = l.Close()
	w.open--
	rig.Eventually(w.t, "the end of a connection", func() bool { return w.rig.Gateway.Connections() <= w.open })
}

// patience is for one answer: nothing here has to wait for anything.
const patience = 20 * time.Second

func (l *link) wait() { must(l.world.t, l.SetDeadline(time.Now().Add(l.world.patience))) }

// exchange sends a request and reads its answer.
func (l *link) exchange(req kmsg.Request) (kmsg.Response, error) {
	l.wait()
	l.next++
	if _, err := l.Write(rig.Frame(req, l.next, clientID)); err != nil {
		return nil, err
	}
	b, err := rig.ReadFrame(l)
	if err != nil {
		return nil, err
	}
	return rig.Decode(req, l.next, b)
}

// login proves the client over a new connection: handshake and authenticate of
// the versions that v says; below handshake 1 the token goes without a frame.
func (c *client) login(v int) bool {
	l, err := c.world.dial()
	if err != nil {
		return c.lost(err)
	}
	c.link = l
	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Mechanism = "PLAIN"
	c.version(hs, v)
	if c.over(hs) == nil {
		return false
	}
	token := []byte("\x00" + clientID + "\x00" + c.key)
	if hs.Version == 0 {
		return c.loginRaw(token)
	}
	auth := kmsg.NewPtrSASLAuthenticateRequest()
	auth.SASLAuthBytes = token
	c.version(auth, v)
	resp, _ := c.over(auth).(*kmsg.SASLAuthenticateResponse)
	if resp != nil && resp.ErrorCode != 0 {
		c.leave()
	}
	return resp != nil && resp.ErrorCode == 0
}

func (c *client) loginRaw(token []byte) bool {
	c.link.wait()
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...)
	_, err := c.link.Write(frame)
	var got []byte
	if err == nil {
		got, err = rig.ReadFrame(c.link)
	}
	if err != nil {
		return c.lost(err)
	}
	c.out.add("  logged in: %q", got)
	return true
}

// leave ends the connection, and with it what belongs to it.
func (c *client) leave() {
	if c.link != nil {
		c.world.hangUp(c.link)
	}
	c.link, c.session = nil, session{}
}

// lost puts down that the connection has ended.
func (c *client) lost(error) bool {
	c.leave()
	c.out.add("  closed")
	return false
}

// ask sends a request, at its version, over a connection that has logged in.
// Nil: there was no answer.
func (c *client) ask(req kmsg.Request) kmsg.Response {
	if c.link == nil && !c.login(1) {
		return nil
	}
	return c.over(req)
}

// over sends a request over the connection that there is.
func (c *client) over(req kmsg.Request) kmsg.Response {
	resp, err := c.link.exchange(req)
	if err != nil {
		c.lost(err)
		return nil
	}
	c.counted.add(resp)
	c.out.answer(resp)
	return resp
}

// askAt is ask at the version that v picks of those announced.
func askAt[T kmsg.Response](c *client, req kmsg.Request, v int) (resp T, ok bool) {
	c.version(req, v)
	resp, ok = c.ask(req).(T)
	return resp, ok
}

// send is askAt where the answer changes nothing.
func (c *client) send(req kmsg.Request, v int) {
	c.version(req, v)
	c.ask(req)
}

// version gives a request the version that v picks of those announced, not
// below a floor where one is given.
func (c *client) version(req kmsg.Request, v int, floor ...int16) {
	for i := range c.world.table {
		if row := &c.world.table[i]; row.Key == req.Key() {
			low := row.Min
			if len(floor) > 0 {
				low = max(low, floor[0])
			}
			req.SetVersion(low + int16(v)%(row.Max-low+1))
		}
	}
}
