// Command throttled takes clients of three libraries through a gateway that holds
// their tenant to a low request rate: each must see throttle_time_ms, finish its
// work without an error that reaches the application, and keep its group without
// a rebalance.
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
	deadline = 3 * time.Minute // of one client
	rate     = 5               // requests a second of a tenant
	records  = 20              // each in a request of its own
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "throttled:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

// client is one library's: it sends and reads records as a tenant, and returns
// how long it was asked to wait in all, in ms.
type client struct {
	name   string
	tenant string
	run    func(ctx context.Context, w libraries.Work) (throttled float64, err error)
}

func run(ctx context.Context) (err error) {
	world, err := libraries.Start(ctx, "throttled")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Stop()) }()
	lanes := [][]client{ // a tenant each: what one does does not slow the other down
		{{"java", "ACME", script(world, "java")}, {"franz-go", "ACME", franz}},
		{{"librdkafka", "GLOBEX", script(world, "librdkafka")}},
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	failed := 0
	for _, lane := range lanes {
		wg.Go(func() {
			for _, c := range lane {
				said, err := c.judged(ctx, world)
				mu.Lock()
				if fmt.Printf("throttled: %s: %s\n", c.name, said); err != nil {
					failed++
					fmt.Printf("throttled: %s: FAILED: %v\n", c.name, err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if failed > 0 {
		return fmt.Errorf("%d of 3 clients failed", failed)
	}
	return ctx.Err()
}

// judged runs a client against a gateway of its own, and looks at that one's
// counters afterwards.
func (c client) judged(ctx context.Context, world *libraries.World) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	g, work, err := world.Gateway(c.name, c.tenant,
		"QUEEN_KAFKA_TENANT_MAX_REQUEST_RATE="+strconv.Itoa(rate), "QUEEN_KAFKA_GROUP_JOIN_DELAY_MS=0")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	began := time.Now()
	throttled, err := c.run(ctx, work)
	took := time.Since(began)
	if err != nil {
		return "", err
	}
	value := func(name string) float64 {
		v, e := g.Metric(ctx, name)
		err = errors.Join(err, e)
		return v
	}
	told := value("queen_edge_throttled_answers_total")
	joined := value(`queen_edge_group_rebalances_total{reason="joined"}`)
	others := 0.0
	for _, reason := range []string{"rejoined", "expired", "unsynced"} {
		others += value(`queen_edge_group_rebalances_total{reason="` + reason + `"}`)
	}
	said = fmt.Sprintf("%d records in and out in %.1f s; it saw %.0f ms of throttling, %.0f answers said so; rebalances: %.0f",
		records, took.Seconds(), throttled, told, joined+others-1)
	switch {
	case err != nil:
	case throttled <= 0 || told <= 0:
		err = errors.New("it did not see that it was throttled")
	case joined != 1 || others != 0:
		err = fmt.Errorf("its group has rebalanced: joined %.0f, else %.0f, want one join", joined, others)
	}
	return said, err
}

// script is a client of another language: its last line is what it saw.
func script(world *libraries.World, library string) func(context.Context, libraries.Work) (float64, error) {
	return func(ctx context.Context, w libraries.Work) (float64, error) {
		words, err := world.Script(ctx, library, w, "RECORDS="+strconv.Itoa(records))
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(words[0], 64)
	}
}
