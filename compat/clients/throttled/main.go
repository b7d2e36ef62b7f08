// Command throttled takes clients of three libraries through a gateway that holds
// their tenant to a low request rate: each must see throttle_time_ms, finish its
// work without an error that reaches the application, and keep its group without
// a rebalance. It wants what `runner --deps` installs for java and
// confluent-kafka-python.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/compat/demo"
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
	run    func(ctx context.Context, w work) (throttled float64, err error)
}

// work is what a client does, and where.
type work struct {
	name, addr, ca, token string
}

func run(ctx context.Context) (err error) {
	root, err := demo.ModuleRoot(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "queen-edge-throttled-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "queen-edge")
	if err := demo.Build(ctx, root, program); err != nil {
		return err
	}
	d, err := demo.Start(ctx, program, dir, filepath.Join(dir, "demo.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	clients := filepath.Join(root, "compat", "clients")
	lanes := [][]client{ // a tenant each: what one does does not slow the other down
		{{"java", "ACME", script(clients, "java")}, {"franz-go", "ACME", franz}},
		{{"librdkafka", "GLOBEX", script(clients, "librdkafka")}},
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	failed := 0
	for _, lane := range lanes {
		wg.Go(func() {
			for _, c := range lane {
				said, err := c.judged(ctx, d, program, dir)
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
func (c client) judged(ctx context.Context, d *demo.Demo, program, dir string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	own := filepath.Join(dir, c.name)
	if err := os.Mkdir(own, 0o700); err != nil {
		return "", err
	}
	g, err := demo.StartGateway(program, own, d.Env["QUEEN_EDGE_CELL_URL"],
		"QUEEN_KAFKA_TENANT_MAX_REQUEST_RATE="+strconv.Itoa(rate), "QUEEN_KAFKA_GROUP_JOIN_DELAY_MS=0")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	began := time.Now()
	throttled, err := c.run(ctx, work{"throttled-" + c.name, g.Addr, g.CA, d.Env["QUEEN_EDGE_TOKEN_"+c.tenant]})
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
func script(clients, name string) func(context.Context, work) (float64, error) {
	return func(ctx context.Context, w work) (float64, error) {
		cache, here := filepath.Join(clients, ".cache"), filepath.Join(clients, "throttled")
		args := []string{filepath.Join(cache, "confluent-kafka-python", "venv", "bin", "python"), "-B", filepath.Join(here, "throttled.py")}
		if name == "java" {
			args = []string{
				"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
				"-cp", filepath.Join(cache, "java", "4.4.0", "lib", "*"), filepath.Join(here, "Throttled.java"),
			}
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "THROTTLED_ADDR="+w.addr, "THROTTLED_CA="+w.ca, "THROTTLED_TOKEN="+w.token,
			"THROTTLED_NAME="+w.name, "THROTTLED_RECORDS="+strconv.Itoa(records))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return 0, fmt.Errorf("%w: %s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return strconv.ParseFloat(lines[len(lines)-1], 64)
	}
}
