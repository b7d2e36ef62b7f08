// Command relogin takes clients of three libraries through a gateway whose logins
// last two seconds (KIP-368): each produces with 50 requests in flight, and reads
// in a group, over and over past the end of its login. No error may reach the
// application, what was acknowledged must be read, and it must have logged in
// again on its connections. QE_FULL=1 does so for a minute instead of seconds.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/compat/clients/libraries"
)

const (
	lifetime = 2 * time.Second
	short    = 8 * time.Second
	long     = time.Minute
	slack    = 2 * time.Minute // beyond the time of work, on a busy machine
	inFlight = 50              // requests of the producer
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed, err := run(ctx)
	fmt.Printf("%d passed, %d failed\n", 3-failed, failed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "relogin:", err)
	}
	if err != nil || failed > 0 {
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

// client is one library's: it works for a while, and returns how many records
// were acknowledged, and how many it has read more than once.
type client struct {
	name string
	run  func(ctx context.Context, w libraries.Work, during time.Duration) (acknowledged, again int, err error)
}

func run(ctx context.Context) (failed int, err error) {
	world, err := libraries.Start(ctx, "relogin")
	if err != nil {
		return 3, err
	}
	defer func() { err = errors.Join(err, world.Stop()) }()
	during := short
	if os.Getenv("QE_FULL") == "1" {
		during = long
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, c := range []client{{"java", script(world, "java")}, {"librdkafka", script(world, "librdkafka")}, {"franz-go", franz}} {
		wg.Go(func() {
			said, err := c.judged(ctx, world, during)
			mu.Lock()
			defer mu.Unlock()
			if fmt.Printf("relogin: %s: %s\n", c.name, said); err != nil {
				failed++
				fmt.Printf("relogin: %s: FAILED: %v\n", c.name, err)
			}
		})
	}
	wg.Wait()
	return failed, ctx.Err()
}

// judged runs a client against a gateway of its own, and looks at that one's
// counters afterwards.
func (c client) judged(ctx context.Context, world *libraries.World, during time.Duration) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, during+slack)
	defer cancel()
	g, work, err := world.Gateway(c.name, "ACME",
		fmt.Sprint("QUEEN_KAFKA_SESSION_LIFETIME_MS=", lifetime.Milliseconds()), "QUEEN_KAFKA_GROUP_JOIN_DELAY_MS=0")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	acknowledged, again, err := c.run(ctx, work, during)
	if err != nil {
		return "", err
	}
	value := func(name string) float64 {
		v, e := g.Metric(ctx, name)
		err = errors.Join(err, e)
		return v
	}
	relogins := value(`queen_edge_logins_total{mechanism="plain",outcome="ok"}`) - value("queen_edge_connections_accepted_total")
	late := value(`queen_edge_connections_closed_total{reason="session_expired",side="gateway"}`)
	said = fmt.Sprintf("%d records in and out in %v, %d of them twice; %.0f logins again, %.0f connections whose login ran out",
		acknowledged, during, again, relogins, late)
	if least := float64(during/lifetime) - 1; err == nil && relogins < least {
		err = fmt.Errorf("it logged in again %.0f times, want %.0f or more", relogins, least)
	}
	return said, err
}

// script is a client of another language. Its last line is the two numbers.
func script(world *libraries.World, library string) func(context.Context, libraries.Work, time.Duration) (int, int, error) {
	return func(ctx context.Context, w libraries.Work, during time.Duration) (int, int, error) {
		words, err := world.Script(ctx, library, w, fmt.Sprint("MS=", during.Milliseconds()), "INFLIGHT="+strconv.Itoa(inFlight))
		if err != nil {
			return 0, 0, err
		}
		if len(words) != 2 {
			return 0, 0, fmt.Errorf("it says %q, want two numbers", words)
		}
		acknowledged, err := strconv.Atoi(words[0])
		if err != nil {
			return 0, 0, err
		}
		again, err := strconv.Atoi(words[1])
		return acknowledged, again, err
	}
}
