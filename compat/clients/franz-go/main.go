// Command franz-go is twmb/franz-go as a client under test.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

func main() {
	gokit.Run(gokit.Client{
		Name: "franz-go", Version: gokit.Version("github.com/twmb/franz-go"), Driver: driver{},
	})
}

type driver struct{}

func client(token string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(opts,
		kgo.SeedBrokers(gokit.Bootstrap()),
		kgo.SASL(plain.Auth{User: "franz-go", Pass: token}.AsMechanism()),
		kgo.DialTLSConfig(gokit.TLS()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.AllowAutoTopicCreation(),
	)...)
}

func (driver) Brokers(ctx context.Context, token string) ([]string, error) {
	c, err := client(token)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	brokers, err := kadm.NewClient(c).ListBrokers(ctx)
	var out []string
	for _, b := range brokers {
		out = append(out, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
	}
	return out, err
}

func (driver) Refused(ctx context.Context, token string) (string, error) {
	c, err := client(token)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.Ping(ctx); err != nil {
		return err.Error(), nil
	}
	return "", errors.New("the login succeeded")
}

func (driver) Produce(ctx context.Context, token, topic string, how gokit.How, records []gokit.Record) error {
	codec := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[how.Codec]
	opts := []kgo.Opt{kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(10 * time.Millisecond)}
	if !how.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	c, err := client(token, opts...)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.ProduceSync(ctx, outgoing(topic, records)...).FirstErr()
}

func outgoing(topic string, records []gokit.Record) []*kgo.Record {
	out := make([]*kgo.Record, len(records))
	for i, r := range records {
		out[i] = &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Timestamp: r.Time}
		for _, h := range r.Headers {
			out[i].Headers = append(out[i].Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
	}
	return out
}

func (driver) Read(ctx context.Context, token, topic string, n int, offsets ...int64) ([]gokit.Record, error) {
	c, err := client(token)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var out []gokit.Record
	for i, offset := range offsets {
		if i == 0 {
			c.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(offset)}})
		} else {
			c.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {0: {Epoch: -1, Offset: offset}}})
		}
		for want := len(out) + n; len(out) < want; {
			fetches := c.PollRecords(ctx, want-len(out))
			if errs := fetches.Errors(); len(errs) > 0 {
				return out, errs[0].Err
			}
			fetches.EachRecord(func(r *kgo.Record) { out = append(out, record(r)) })
		}
	}
	return out, nil
}

func record(r *kgo.Record) gokit.Record {
	out := gokit.Record{Offset: r.Offset, Key: r.Key, Value: r.Value, Time: r.Timestamp}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, gokit.Header{Name: h.Key, Value: h.Value})
	}
	return out
}

func (driver) OffsetAt(ctx context.Context, token, topic string, at time.Time) (int64, error) {
	return listed(token, topic, func(a *kadm.Client) (kadm.ListedOffsets, error) {
		return a.ListOffsetsAfterMilli(ctx, at.UnixMilli(), topic)
	})
}

func (driver) End(ctx context.Context, token, topic string) (int64, error) {
	return listed(token, topic, func(a *kadm.Client) (kadm.ListedOffsets, error) {
		return a.ListEndOffsets(ctx, topic)
	})
}

func listed(token, topic string, list func(*kadm.Client) (kadm.ListedOffsets, error)) (int64, error) {
	c, err := client(token)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	offsets, err := list(kadm.NewClient(c))
	if err := errors.Join(err, offsets.Error()); err != nil {
		return 0, err
	}
	o, ok := offsets.Lookup(topic, 0)
	if !ok {
		return 0, fmt.Errorf("no offset of partition 0 of %s", topic)
	}
	return o.Offset, nil
}

func (driver) Topics(ctx context.Context, token string) ([]string, error) {
	c, err := client(token)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	topics, err := kadm.NewClient(c).ListTopics(ctx)
	return topics.Names(), err
}
