// Command kafka-go is segmentio/kafka-go as a client under test.
package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

func main() {
	gokit.Run(gokit.Client{
		Name: "kafka-go", Version: gokit.Version("github.com/segmentio/kafka-go"), Driver: driver{},
		Cannot: map[string]string{
			"t-0":                 "the time 0 is taken for no time",
			"read.null":           "what is empty is read as null",
			"member.admin-groups": "it decodes subscriptions of members up to version 1, and the member of the group has a newer one",
		},
	})
}

type driver struct{}

// TLS and SASL are to be set twice: writers have a Transport, readers a Dialer.
func transport(token string) *kafka.Transport {
	return &kafka.Transport{TLS: gokit.TLS(), SASL: plain.Mechanism{Username: "kafka-go", Password: token}}
}

func dialer(token string) *kafka.Dialer {
	return &kafka.Dialer{TLS: gokit.TLS(), SASLMechanism: plain.Mechanism{Username: "kafka-go", Password: token}}
}

func metadata(ctx context.Context, token string, topics ...string) (*kafka.MetadataResponse, error) {
	t := transport(token)
	defer t.CloseIdleConnections()
	c := kafka.Client{Addr: kafka.TCP(gokit.Bootstrap()), Transport: t}
	return c.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
}

func (driver) Brokers(ctx context.Context, token string) ([]string, error) {
	m, err := metadata(ctx, token)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, b := range m.Brokers {
		out = append(out, net.JoinHostPort(b.Host, strconv.Itoa(b.Port)))
	}
	return out, nil
}

// Refused asks both ways in: a Transport repeats the server's sentence, a Dialer
// has the code only.
func (driver) Refused(ctx context.Context, token string) (string, error) {
	_, byTransport := metadata(ctx, token)
	c, byDialer := dialer(token).DialContext(ctx, "tcp", gokit.Bootstrap())
	if byDialer == nil {
		return "", errors.Join(errors.New("the login succeeded"), c.Close())
	}
	if byTransport == nil {
		return "", errors.New("a Transport logged in")
	}
	return "Transport: " + byTransport.Error() + "; Dialer: " + byDialer.Error(), nil
}

func (driver) Produce(ctx context.Context, token, topic string, how gokit.How, records []gokit.Record) error {
	if how.Idempotent {
		return gokit.Skip("kafka-go has no idempotent producer")
	}
	t := transport(token)
	defer t.CloseIdleConnections()
	w := &kafka.Writer{
		Addr: kafka.TCP(gokit.Bootstrap()), Topic: topic, Transport: t,
		Balancer:     kafka.BalancerFunc(func(kafka.Message, ...int) int { return 0 }),
		RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond, BatchBytes: 1 << 20,
		AllowAutoTopicCreation: true,
		Compression: map[string]kafka.Compression{
			"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
		}[how.Codec],
	}
	messages := make([]kafka.Message, len(records))
	for i, r := range records {
		messages[i] = kafka.Message{Key: r.Key, Value: r.Value, Time: r.Time}
		for _, h := range r.Headers {
			messages[i].Headers = append(messages[i].Headers, kafka.Header{Key: h.Name, Value: h.Value})
		}
	}
	return errors.Join(w.WriteMessages(ctx, messages...), w.Close())
}

func (driver) Read(ctx context.Context, token, topic string, n int, offsets ...int64) ([]gokit.Record, error) {
	var log failures
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{gokit.Bootstrap()}, Topic: topic, Partition: 0, Dialer: dialer(token),
		MaxBytes: 10 << 20, MaxWait: 100 * time.Millisecond, ErrorLogger: &log, MaxAttempts: 1,
	})
	defer r.Close()
	var out []gokit.Record
	for _, offset := range offsets {
		if err := r.SetOffset(offset); err != nil {
			return out, err
		}
		for range n {
			m, err := r.ReadMessage(ctx)
			if err != nil {
				return out, errors.Join(err, log.err())
			}
			out = append(out, record(m))
		}
	}
	return out, nil
}

func record(m kafka.Message) gokit.Record {
	out := gokit.Record{Offset: m.Offset, Key: m.Key, Value: m.Value, Time: m.Time}
	if m.Time.IsZero() { // what kafka-go makes of the time 0
		out.Time = time.UnixMilli(0)
	}
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, gokit.Header{Name: h.Key, Value: h.Value})
	}
	return out
}

func (driver) OffsetAt(ctx context.Context, token, topic string, at time.Time) (int64, error) {
	return onLeader(ctx, token, topic, func(c *kafka.Conn) (int64, error) { return c.ReadOffset(at) })
}

func (driver) End(ctx context.Context, token, topic string) (int64, error) {
	return onLeader(ctx, token, topic, (*kafka.Conn).ReadLastOffset)
}

func onLeader(ctx context.Context, token, topic string, ask func(*kafka.Conn) (int64, error)) (int64, error) {
	c, err := dialer(token).DialLeader(ctx, "tcp", gokit.Bootstrap(), topic, 0)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return ask(c)
}

func (driver) Topics(ctx context.Context, token string) ([]string, error) {
	m, err := metadata(ctx, token)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range m.Topics {
		out = append(out, t.Name)
	}
	return out, nil
}
