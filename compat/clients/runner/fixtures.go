package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/demo"
)

const (
	fixtureTimeout = time.Minute
	readTimeout    = 30 * time.Second
	half           = 5 // records on each side of COMPAT_TIME
	partitions     = 4
	groupCount     = 10 // records in each partition that groups read
)

// fixtures are what clients find when they come: topics that this program
// filled.
type fixtures struct {
	run         string
	readTopic   string
	timeTopic   string
	groupTopic  string
	at          int64 // COMPAT_TIME
	read        []fields
	afterTime   fields // the first record appended after that time
	ofGlobex    fields // the one record of globex's topic of the same name
	globexNames []string
	admin       *administered
}

// readChecksOf are the checks whose lines are in the topic that clients read.
var readChecksOf = []string{"keys-and-nulls", "headers", "timestamps", "sizes"}

func makeFixtures(ctx context.Context, d *demo.Demo, set dataset) (*fixtures, error) {
	ctx, cancel := context.WithTimeout(ctx, fixtureTimeout)
	defer cancel()
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	f := &fixtures{run: "c" + hex.EncodeToString(id)}
	f.readTopic, f.timeTopic, f.groupTopic = f.run+"-read", f.run+"-time", f.run+"-group"
	f.globexNames = []string{f.readTopic}
	acme, err := d.Kafka("ACME", kgo.AllowAutoTopicCreation())
	if err != nil {
		return nil, err
	}
	defer acme.Close()
	globex, err := d.Kafka("GLOBEX", kgo.AllowAutoTopicCreation())
	if err != nil {
		return nil, err
	}
	defer globex.Close()
	err = errors.Join(f.fillRead(ctx, acme, set), f.fillGlobex(ctx, globex), f.fillTime(ctx, acme), f.fillGroup(ctx, acme), f.administer(ctx, d))
	if err != nil {
		f.admin.close()
		return nil, fmt.Errorf("fill the topics that clients read: %w", err)
	}
	return f, nil
}

func (f *fixtures) fillRead(ctx context.Context, c *kgo.Client, set dataset) error {
	for _, check := range readChecksOf {
		for _, r := range set.rowsOf(check) {
			rec, err := r.record(f.readTopic)
			if err != nil {
				return err
			}
			if err := write(ctx, c, rec, len(f.read)); err != nil {
				return fmt.Errorf("%s: %w", r.id, err)
			}
			f.read = append(f.read, fieldsOf(rec))
		}
	}
	return nil
}

func (f *fixtures) fillGlobex(ctx context.Context, c *kgo.Client) error {
	rec := &kgo.Record{Topic: f.readTopic, Key: []byte("globex"), Value: []byte("of globex"), Timestamp: time.UnixMilli(1700000000000)}
	f.ofGlobex = fieldsOf(rec)
	return write(ctx, c, rec, 0)
}

// fillTime writes records on both sides of an instant, whichever of a record's
// clocks the look-up goes by.
func (f *fixtures) fillTime(ctx context.Context, c *kgo.Client) error {
	for i := range 2 * half {
		if i == half {
			if err := pass(ctx, time.Now()); err != nil {
				return err
			}
			now := time.Now()
			f.at = now.UnixMilli()
			if err := pass(ctx, now); err != nil {
				return err
			}
		}
		rec := &kgo.Record{Topic: f.timeTopic, Value: fmt.Appendf(nil, "%d", i), Timestamp: time.Now().Truncate(time.Millisecond)}
		if err := write(ctx, c, rec, i); err != nil {
			return err
		}
		if i == half {
			f.afterTime = fieldsOf(rec)
		}
	}
	return nil
}

// fillGroup writes as many records to each partition of the topic that groups
// read.
func (f *fixtures) fillGroup(ctx context.Context, c *kgo.Client) error {
	for i := range groupCount {
		for p := range partitions {
			rec := &kgo.Record{Topic: f.groupTopic, Partition: int32(p), Value: fmt.Appendf(nil, "%d-%d", p, i)}
			if err := write(ctx, c, rec, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass waits until the clock, in milliseconds, is past an instant.
func pass(ctx context.Context, instant time.Time) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for time.Now().UnixMilli() <= instant.UnixMilli() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// write writes a record to its partition, where its offset must be the given one.
func write(ctx context.Context, c *kgo.Client, rec *kgo.Record, offset int) error {
	if err := c.ProduceSync(ctx, rec).FirstErr(); err != nil {
		return err
	}
	if rec.Offset != int64(offset) {
		return fmt.Errorf("a record got offset %d, want %d", rec.Offset, offset)
	}
	return nil
}

// environ is what clients are told of the fixtures.
func (f *fixtures) environ(p places) []string {
	return []string{
		"COMPAT_RUN=" + f.run,
		"COMPAT_DATASET=" + filepath.Join(p.clients, "dataset.tsv"),
		"COMPAT_READ_TOPIC=" + f.readTopic,
		"COMPAT_READ_COUNT=" + strconv.Itoa(len(f.read)),
		"COMPAT_GROUP_TOPIC=" + f.groupTopic,
		"COMPAT_GROUP_COUNT=" + strconv.Itoa(groupCount),
		"COMPAT_ALIVE_GROUP=" + f.admin.group,
		"COMPAT_DOOMED=" + f.admin.prefix,
		"COMPAT_TIME_TOPIC=" + f.timeTopic,
		"COMPAT_TIME=" + strconv.FormatInt(f.at, 10),
	}
}

// readBack reads partition 0 of a topic whole. Records elsewhere are an error.
func readBack(ctx context.Context, d *demo.Demo, topic string) ([]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	ends, err := endOffsets(ctx, d, topic)
	if err != nil {
		return nil, err
	}
	for partition, end := range ends {
		if partition != 0 && end != 0 {
			return nil, fmt.Errorf("%d records are in partition %d", end, partition)
		}
	}
	c, err := d.Kafka("ACME", kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var out []*kgo.Record
	for next := int64(0); next < ends[0]; {
		fetches := c.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return nil, errs[0].Err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			out = append(out, r)
			next = r.Offset + 1
		})
	}
	return out, nil
}

func endOffsets(ctx context.Context, d *demo.Demo, topic string) (map[int32]int64, error) {
	c, err := d.Kafka("ACME")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	listed, err := kadm.NewClient(c).ListEndOffsets(ctx, topic)
	if err := errors.Join(err, listed.Error()); err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}
