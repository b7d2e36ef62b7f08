package edge

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/tlsconf"
)

// handshaken is a TLS connection to a client that then reads nothing; what is
// written to it waits.
func handshaken(t *testing.T) *conn {
	t.Helper()
	ca, err := tlsconf.OpenDevCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.IssuePair([]string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	store, err := tlsconf.Open(tlsconf.Config{Pair: pair})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	c := &conn{nc: tls.Server(near, store.TLS()), stopPoll: func() {}, stopEntry: func() {}}
	client := tls.Client(far, &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := client.Handshake(); err != nil {
			t.Error(err)
			return
		}
		_, _ = client.Read(make([]byte, 1)) // session tickets, and the byte behind them
	})
	if err := c.nc.(*tls.Conn).Handshake(); err != nil {
		t.Error(err)
	}
	if _, err := c.nc.Write([]byte{0}); err != nil {
		t.Error(err)
	}
	wg.Wait()
	return c
}

// A client that does not read cannot keep its connection: TLS would wait five
// seconds to say goodbye to it.
func TestEndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := handshaken(t)
		began := time.Now()
		c.end(wire.Closing(wire.Revoked, nil))
		if took := time.Since(began); took > closeTimeout {
			t.Errorf("the end took %v", took)
		}
	})
}

// Nor can those of many hold up each other's end.
func TestEndsAreNotInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns []*conn
		for range 5 {
			conns = append(conns, handshaken(t))
		}
		began := time.Now()
		endAll(conns, wire.Revoked)
		if took := time.Since(began); took > closeTimeout {
			t.Errorf("the ends took %v", took)
		}
		for i, c := range conns {
			if c.ended.Load().Reason != wire.Revoked {
				t.Errorf("connection %d has not ended", i)
			}
		}
	})
}
