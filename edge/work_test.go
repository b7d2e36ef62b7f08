package edge

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

func defaultServer() *Server {
	cfg := config.Defaults()
	return &Server{cfg: cfg}
}

// RFC 8446 §4.6.3: a client may ask for new keys while no request of its is under
// way, and TLS answers that by itself: as long after the last answer as a
// connection may be idle.
func TestTLSMayWriteBetweenAnswers(t *testing.T) {
	for name, send := range map[string]func(c *conn) error{
		"whole": func(c *conn) error { return c.write([]byte("answer")) },
		"lent":  func(c *conn) error { return c.writeAnswer([]byte("answer"), []wire.Lent{{Bytes: []byte("lent")}}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, far) }()
				c := &conn{srv: defaultServer(), nc: near}
				if err := send(c); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.srv.cfg.Limits.Idle)
				if _, err := near.Write([]byte("new keys")); err != nil {
					t.Error(err)
				}
				_ = near.Close()
			})
		})
	}
}

// A client has to take as much in a time of an answer whose parts lie elsewhere
// as of one that is whole: it could hold the memory of many small batches for
// hours, were there a deadline for each of them.
func TestLentPartsAreTakenInTime(t *testing.T) {
	const parts, part = 64, 16 << 10
	own := bytes.Repeat([]byte{1}, parts)
	lent := make([]wire.Lent, parts)
	for i := range lent {
		lent[i] = wire.Lent{At: i + 1, Bytes: bytes.Repeat([]byte{2}, part)}
	}
	whole := make([]byte, parts*(1+part))
	for name, test := range map[string]struct {
		send func(c *conn) error
		each time.Duration // between two reads of a part's size
		slow bool
	}{
		"whole, slow": {func(c *conn) error { return c.write(whole) }, 3 * time.Second, true},
		"lent, slow":  {func(c *conn) error { return c.writeAnswer(own, lent) }, 3 * time.Second, true},
		"whole":       {func(c *conn) error { return c.write(whole) }, time.Second, false},
		"lent":        {func(c *conn) error { return c.writeAnswer(own, lent) }, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				took := make(chan int)
				go func() {
					n, err := 0, error(nil)
					for b := make([]byte, part); err == nil; time.Sleep(test.each) {
						var more int
						more, err = io.ReadFull(far, b)
						n += more
					}
					took <- n
				}()
				err := test.send(&conn{srv: defaultServer(), nc: near})
				_ = near.Close()
				if n := <-took; test.slow != (n < len(whole)) {
					t.Errorf("the client took %d bytes of %d", n, len(whole))
				}
				if test.slow && closeOf(err).Reason != wire.ClientSlow || !test.slow && err != nil {
					t.Error(err)
				}
			})
		})
	}
}
