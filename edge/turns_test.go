package edge

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/turn"
)

// seated is a connection of each tenant on a line that has two turns.
func seated(t *testing.T) (line *turn.Line, noisy, other, quiet *conn) {
	t.Helper()
	s := scopes(t, "acme.1", "globex.1")
	noisy, other, quiet = paced(t, s[0], 1000), paced(t, s[0], 1000), paced(t, s[1], 1000)
	line = turn.New(2, .25)
	noisy.seat, other.seat, quiet.seat = line.Enter(s[0]), line.Enter(s[0]), line.Enter(s[1])
	t.Cleanup(func() {
		for _, c := range []*conn{noisy, other, quiet} {
			c.seat.Leave()
			c.stopPoll()
		}
	})
	line.Step(time.Second) // late: the fewest turns
	return line, noisy, other, quiet
}

// A worker waits for its tenant's turn before it takes requests off the queue, so
// that what comes meanwhile is served with them; another tenant's does not wait
// behind it.
func TestWorkerTakesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, noisy, other, quiet := seated(t)
		for _, c := range []*conn{noisy, other, quiet} {
			c.arrived(t, kmsg.Produce)
		}
		noisy.takeTurn()
		turned := make(chan struct{})
		go func() {
			defer close(turned)
			other.takeTurn()
		}()
		synctest.Wait()
		quiet.takeTurn()
		if n := line.Stats().Waiting; n != 1 {
			t.Fatalf("%d wait", n)
		}
		other.arrived(t, kmsg.Produce)
		run := noisy.queue.take(nil, 5, time.Now)
		noisy.giveTurn(run, 100)
		<-turned
		if run := other.queue.take(nil, 5, time.Now); len(run) != 2 {
			t.Errorf("%d requests share the turn", len(run))
		}
	})
}

// A connection that ends in line is not held there, and one with nothing to serve
// takes no turn.
func TestNoTurnForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, noisy, other, _ := seated(t)
		noisy.arrived(t, kmsg.Produce)
		noisy.takeTurn()
		other.takeTurn() // has nothing to serve
		other.arrived(t, kmsg.Produce)
		turned := make(chan struct{})
		go func() {
			defer close(turned)
			other.takeTurn()
		}()
		synctest.Wait()
		if n := line.Stats().Waiting; n != 1 {
			t.Fatalf("%d wait", n)
		}
		other.stopPoll()
		<-turned
		if n := line.Stats().Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}
