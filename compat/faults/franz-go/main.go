// Command franz-go is an idempotent producer program of compat/faults: franz-go
// as it is by default.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	partitions, err := strconv.Atoi(os.Getenv("QE_FAULTS_PARTITIONS"))
	if err != nil {
		return err
	}
	c, err := kgo.NewClient(
		kgo.SeedBrokers(os.Getenv("QE_FAULTS_BOOTSTRAP")),
		kgo.SASL(plain.Auth{User: "franz-go", Pass: os.Getenv("QE_FAULTS_TOKEN")}.AsMechanism()),
		kgo.DefaultProduceTopic(os.Getenv("QE_FAULTS_TOPIC")),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(4096), // so that there are many
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.AlwaysRetryEOF(), // docs/CLIENTS.md
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)),
	)
	if err != nil {
		return err
	}
	out := &report{w: bufio.NewWriter(os.Stdout)}
	out.say("ready")
	padding := " " + strings.Repeat("x", 100)
	next := 0
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		end, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		for ; next < end; next++ {
			n := next
			rec := &kgo.Record{Partition: int32(n % partitions), Value: []byte(strconv.Itoa(n) + padding)}
			c.Produce(context.Background(), rec, func(rec *kgo.Record, err error) {
				if err != nil {
					out.say("failed", n, err)
					return
				}
				out.say("acked", n, rec.Offset)
			})
		}
	}
	if err := c.Flush(context.Background()); err != nil {
		return err
	}
	c.Close()
	out.say("done")
	return nil
}

// report writes lines as they come.
type report struct {
	mu sync.Mutex // guards w
	w  *bufio.Writer
}

func (r *report) say(words ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintln(r.w, words...)
	_ = r.w.Flush()
}
