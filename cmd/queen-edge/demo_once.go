package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

const (
	onceTopic   = "orders"
	onceRecords = 1000
	onceTimeout = time.Minute
)

// errNotIsolated is a round trip in which a tenant saw what is not its own, or
// not all that is.
var errNotIsolated = errors.New("the tenants are not isolated")

// once lets both tenants produce to one topic name and consume it.
func (d *demoRun) once(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, onceTimeout)
	defer cancel()
	// A run of its own, so that a kept data folder does not count earlier runs.
	run := fmt.Sprintf("run-%d", time.Now().UnixNano())
	tenants := []string{"acme", "globex"}
	for _, name := range tenants {
		if err := d.produceOnce(ctx, name, run); err != nil {
			return fmt.Errorf("%s: produce: %w", name, err)
		}
	}
	isolated := true
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "tenant\ttopic\tproduced\tconsumed\tof others")
	for _, name := range tenants {
		own, others, err := d.consumeOnce(ctx, name, run)
		if err != nil {
			return fmt.Errorf("%s: consume: %w", name, err)
		}
		isolated = isolated && own == onceRecords && others == 0
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\n", name, onceTopic, onceRecords, own, others)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	answer := map[bool]string{true: "yes", false: "no"}[isolated]
	if _, err := fmt.Fprintf(w, "demo: %d tenants, %d records each, isolated: %s\n", len(tenants), onceRecords, answer); err != nil {
		return err
	}
	if !isolated {
		return errNotIsolated
	}
	return nil
}

func (d *demoRun) kafka(tenant string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(opts,
		kgo.SeedBrokers(d.bootstrap()),
		kgo.SASL(plain.Auth{User: tenant, Pass: d.token(strings.ToUpper(tenant))}.AsMechanism()),
		kgo.DialTLSConfig(&tls.Config{RootCAs: d.roots, MinVersion: tls.VersionTLS12}),
	)...)
}

func (d *demoRun) produceOnce(ctx context.Context, tenant, run string) error {
	c, err := d.kafka(tenant, kgo.AllowAutoTopicCreation())
	if err != nil {
		return err
	}
	defer c.Close()
	records := make([]*kgo.Record, onceRecords)
	for i := range records {
		records[i] = &kgo.Record{
			Topic: onceTopic, Key: fmt.Appendf(nil, "%d", i),
			Value:   fmt.Appendf(nil, "%s %s %d", tenant, run, i),
			Headers: []kgo.RecordHeader{{Key: "tenant", Value: []byte(tenant)}},
		}
	}
	return c.ProduceSync(ctx, records...).FirstErr()
}

// consumeOnce reads the topic from its start to the ends it has now, and counts
// this run's records of the tenant and records of anybody else.
func (d *demoRun) consumeOnce(ctx context.Context, tenant, run string) (own, others int, err error) {
	c, err := d.kafka(tenant, kgo.ConsumeTopics(onceTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, onceTopic)
	if err := errors.Join(err, ends.Error()); err != nil {
		return 0, 0, err
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	for left > 0 {
		fetches := c.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return own, others, errs[0].Err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			fields := strings.Fields(string(r.Value))
			switch {
			case len(fields) != 3 || fields[0] != tenant:
				others++
			case fields[1] == run:
				own++
			}
		})
	}
	return own, others, nil
}
