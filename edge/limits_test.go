package edge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/tenancy"
)

// paced is a connection of a tenant with a request rate, which owes already.
func paced(t *testing.T, s tenancy.Scope, rate int) *conn {
	t.Helper()
	cfg := config.Defaults()
	cfg.Tenant.MaxRequestRate = rate
	srv := &Server{clock: time.Now, limits: newLimits(&cfg)}
	srv.limits.requests.Take(s, rate, time.Now())
	c := &conn{srv: srv, scope: s, queue: newQueue(), pace: newPace(srv.limits)}
	c.queue.bell = make(chan struct{}, 1)
	c.poll, c.stopPoll = context.WithCancel(t.Context())
	return c
}

// arrived is a frame that the reader has read.
func (c *conn) arrived(t *testing.T, key kmsg.Key) frame {
	t.Helper()
	table := api.Table()
	for i := range table {
		if table[i].Key == int16(key) {
			f := frame{req: api.Request{Row: &table[i]}}
			c.awaitUnmuted(&f, 100)
			c.queue.slots <- struct{}{}
			c.queue.put(f)
			return f
		}
	}
	t.Fatalf("no API %d", key)
	return frame{}
}

// served is what the worker does for the next run: it returns how long the
// client of one of its answers is asked to wait.
func (c *conn) served(named time.Duration) (told time.Duration, key int16) {
	c.sitOutMute()
	run := c.queue.take(nil, 1, time.Now)
	c.charge(run)
	if !run[0].unheld() {
		told = c.throttle(named)
	}
	c.mute()
	return told, run[0].req.Row.Key
}

// Field case H1, tulios/kafkajs#1532: a short throttle, a middling and the
// longest; the answer first, then the mute, for as long as was said. A connection
// that waits for nobody any more is not muted.
func TestMuteIsWhatWasSaid(t *testing.T) {
	s := scopes(t, "acme.1")[0]
	for _, test := range []struct {
		rate, owed int
		named      time.Duration
		told       time.Duration
	}{
		{rate: 1000, told: time.Millisecond},
		{rate: 20, told: 50 * time.Millisecond},
		{rate: 3, told: 334 * time.Millisecond}, // rounded up: a client that comes back then is in time
		{rate: 1, owed: 4, told: 5 * time.Second},
		{rate: 1, owed: 100, told: 5 * time.Second},
		{rate: 1, owed: 100, named: 30 * time.Second, told: 5 * time.Second},
		{rate: 1, owed: 100, named: 3 * time.Second, told: 1500 * time.Millisecond}, // never above the client's timeout
		{rate: 1, owed: 100, named: time.Millisecond, told: 100 * time.Millisecond}, // which is no way around the limit
	} {
		synctest.Test(t, func(t *testing.T) {
			c := paced(t, s, test.rate)
			c.srv.limits.requests.Take(s, test.owed, time.Now())
			c.arrived(t, kmsg.Metadata)
			began := time.Now()
			if told, _ := c.served(test.named); told != test.told {
				t.Errorf("%+v: told %v", test, told)
			}
			if waited := time.Since(began); waited != 0 {
				t.Errorf("%+v: the answer came after %v", test, waited)
			}
			c.arrived(t, kmsg.Metadata)
			if waited := time.Since(began); waited != test.told {
				t.Errorf("%+v: the next frame was read after %v", test, waited)
			}
			c.served(test.named) // the debt is paid, or bounded
			c.stopPoll()
			began = time.Now()
			c.arrived(t, kmsg.Metadata)
			c.served(0)
			if waited := time.Since(began); waited != 0 {
				t.Errorf("%+v: a connection that ends was muted for %v", test, waited)
			}
		})
	}
}

// A request that has waited for the cell has waited.
func TestThrottleCountsTheWait(t *testing.T) {
	s := scopes(t, "acme.1")[0]
	synctest.Test(t, func(t *testing.T) {
		c := paced(t, s, 2)
		c.arrived(t, kmsg.Fetch)
		c.charge(c.queue.take(nil, 1, time.Now))
		time.Sleep(200 * time.Millisecond) // the bubble's clock
		if told := c.throttle(0); told != 300*time.Millisecond {
			t.Errorf("told %v", told)
		}
		time.Sleep(400 * time.Millisecond)
		if told := c.throttle(0); told != 0 {
			t.Errorf("told %v after it was within the rate", told)
		}
		c.stopPoll()
	})
}

// What keeps a member or a transaction is counted and never held, and what came
// before it on its connection is answered with it: so often and no more.
func TestMuteLetsMembersThrough(t *testing.T) {
	s := scopes(t, "acme.1")[0]
	for _, key := range []kmsg.Key{
		kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.OffsetCommit, kmsg.TxnOffsetCommit, kmsg.EndTxn,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := paced(t, s, 1)
			c.srv.limits.requests.Take(s, 100, time.Now())
			c.arrived(t, key)
			if told, _ := c.served(0); told != 0 || c.pace.left() > 0 {
				t.Errorf("%s: told to wait for %v", key.Name(), told)
			}
			keeping := time.Second // a sixth of the shortest session
			c.arrived(t, kmsg.Fetch)
			if told, _ := c.served(0); told != keeping {
				t.Errorf("%s: its connection is told to wait for %v", key.Name(), told)
			}
			began := time.Now()
			c.arrived(t, kmsg.Fetch) // one that does not wait by itself
			c.arrived(t, kmsg.Fetch)
			c.arrived(t, key)
			for range 3 {
				c.served(0)
			}
			if waited := time.Since(began); waited != 0 {
				t.Errorf("%s was held for %v behind a mute", key.Name(), waited)
			}
			for range 9 {
				c.arrived(t, kmsg.Fetch)
			}
			c.arrived(t, key)
			for range 10 {
				c.served(0)
			}
			if waited := time.Since(began); waited != keeping {
				t.Errorf("%s: ten more after %v, want %v", key.Name(), waited, keeping)
			}
			c.stopPoll()
		})
	}
}

// One that arrives in the middle of a mute ends the wait of those before it.
func TestMuteHearsTheBell(t *testing.T) {
	s := scopes(t, "acme.1")[0]
	synctest.Test(t, func(t *testing.T) {
		c := paced(t, s, 1)
		c.arrived(t, kmsg.Heartbeat)
		c.served(0)
		time.Sleep(c.srv.limits.keeping) // a pass is due
		c.srv.limits.requests.Take(s, 100, time.Now())
		c.arrived(t, kmsg.Fetch)
		c.served(0)
		c.arrived(t, kmsg.Fetch)
		done := make(chan time.Duration)
		began := time.Now()
		go func() {
			c.served(0)
			done <- time.Since(began)
		}()
		time.Sleep(10 * time.Millisecond)
		c.arrived(t, kmsg.Heartbeat)
		if waited := <-done; waited != 10*time.Millisecond {
			t.Errorf("waited for %v", waited)
		}
		c.stopPoll()
	})
}

// A frame of many bytes is not read during a mute: memory would be held for it.
func TestMuteReadsNoLargeFrames(t *testing.T) {
	s := scopes(t, "acme.1")[0]
	synctest.Test(t, func(t *testing.T) {
		c := paced(t, s, 1)
		c.arrived(t, kmsg.Heartbeat)
		c.served(0)
		c.arrived(t, kmsg.Produce)
		told, _ := c.served(0)
		began := time.Now()
		f := c.arrived(t, kmsg.Produce)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a small frame was read after %v", waited)
		}
		c.awaitUnmuted(&f, smallFrame+1)
		if waited := time.Since(began); waited != told || told == 0 {
			t.Errorf("a large frame was read after %v, want %v", waited, told)
		}
		c.stopPoll()
	})
}
