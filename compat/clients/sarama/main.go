// Command sarama is IBM/sarama as a client under test, with its Config.Version
// set to one protocol version after another.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/queen-mq/queen-edge/compat/clients/gokit"
)

// versions are those at which sarama's requests change; sarama.MaxVersion is
// the newest. The first two produce messages of magic 0 and 1, and are too old to
// read: they ask for Fetch 0 and 3.
var versions = []sarama.KafkaVersion{
	sarama.V0_8_2_0, sarama.V0_10_2_0,
	sarama.V1_0_0_0, sarama.V1_1_0_0, sarama.V2_0_0_0, sarama.V2_1_0_0, sarama.V2_4_0_0,
	sarama.V2_8_0_0, sarama.V3_3_0_0, sarama.MaxVersion,
}

func main() {
	library := gokit.Version("github.com/IBM/sarama")
	var clients []gokit.Client
	for _, v := range versions {
		clients = append(clients, gokit.Client{
			Name: "sarama", Version: library + "/V" + v.String(), Driver: driver{v}, Cannot: cannot(v),
		})
	}
	gokit.Run(clients...)
}

// cannot is what the message formats of a version have no room for.
func cannot(v sarama.KafkaVersion) map[string]string {
	out := map[string]string{}
	if !v.IsAtLeast(sarama.V0_11_0_0) {
		out["c-headers"] = "messages of magic 0 and 1 have no headers"
		out["said.bad-token"] = "the login before SaslAuthenticate has no room for a reason"
		out["said.missing-scope"] = out["said.bad-token"]
	}
	return out
}

type driver struct{ version sarama.KafkaVersion }

// cannotRead is the answer of a version whose Fetch is below 4.
func (d driver) cannotRead() error {
	if d.version.IsAtLeast(sarama.V0_11_0_0) {
		return nil
	}
	return gokit.Skip("it asks for Fetch 3 or below, and for messages of magic 0 and 1; reading starts with Fetch 4 (V0_11_0_0)")
}

// cannotProduce is why a version has no way to say what these records hold.
func (d driver) cannotProduce(how gokit.How, records []gokit.Record) error {
	hasHeaders := slices.ContainsFunc(records, func(r gokit.Record) bool { return len(r.Headers) > 0 })
	hasTimes := slices.ContainsFunc(records, func(r gokit.Record) bool { return !r.Time.IsZero() })
	switch {
	case how.Codec == "zstd" && !d.version.IsAtLeast(sarama.V2_1_0_0):
		return gokit.Skip("sarama allows zstd from Config.Version V2_1_0_0 on")
	case how.Codec == "lz4" && !d.version.IsAtLeast(sarama.V0_10_0_0):
		return gokit.Skip("sarama allows lz4 from Config.Version V0_10_0_0 on")
	case how.Idempotent && !d.version.IsAtLeast(sarama.V0_11_0_0):
		return gokit.Skip("idempotence came with V0_11_0_0")
	case hasHeaders && !d.version.IsAtLeast(sarama.V0_11_0_0):
		return gokit.Skip("headers came with V0_11_0_0: messages of magic 0 and 1 have none")
	case hasTimes && !d.version.IsAtLeast(sarama.V0_10_0_0):
		return gokit.Skip("timestamps came with V0_10_0_0: messages of magic 0 have none")
	}
	return nil
}

func (d driver) config(token string) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = d.version
	c.ClientID = "sarama"
	c.Net.TLS.Enable, c.Net.TLS.Config = true, gokit.TLS()
	c.Net.SASL.Enable, c.Net.SASL.Mechanism = true, sarama.SASLTypePlaintext
	c.Net.SASL.Version = sarama.SASLHandshakeV1
	if !d.version.IsAtLeast(sarama.V1_0_0_0) { // SaslAuthenticate came with 1.0; only with it are versions asked for
		c.Net.SASL.Version, c.ApiVersionsRequest = sarama.SASLHandshakeV0, false
	}
	c.Net.SASL.User, c.Net.SASL.Password = "sarama", token
	c.Metadata.Retry.Max = 1
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Return.Errors = true
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	return c
}

func (d driver) client(token string) (sarama.Client, error) {
	return sarama.NewClient([]string{gokit.Bootstrap()}, d.config(token))
}

func (d driver) Brokers(_ context.Context, token string) ([]string, error) {
	c, err := d.client(token)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var out []string
	for _, b := range c.Brokers() {
		out = append(out, b.Addr())
	}
	return out, nil
}

func (d driver) Refused(_ context.Context, token string) (string, error) {
	c, err := d.client(token)
	if err != nil {
		return err.Error(), nil
	}
	return "", errors.Join(errors.New("the login succeeded"), c.Close())
}

func (d driver) Produce(_ context.Context, token, topic string, how gokit.How, records []gokit.Record) error {
	if err := d.cannotProduce(how, records); err != nil {
		return err
	}
	config := d.config(token)
	config.Producer.Compression = map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[how.Codec]
	config.Producer.Flush.Frequency = 10 * time.Millisecond
	config.Net.MaxOpenRequests = 1 // keeps the order
	config.Producer.Idempotent = how.Idempotent
	p, err := sarama.NewSyncProducer([]string{gokit.Bootstrap()}, config)
	if err != nil {
		return err
	}
	return errors.Join(send(p, outgoing(topic, records)), p.Close())
}

func outgoing(topic string, records []gokit.Record) []*sarama.ProducerMessage {
	messages := make([]*sarama.ProducerMessage, len(records))
	for i, r := range records {
		messages[i] = &sarama.ProducerMessage{Topic: topic, Key: encoder(r.Key), Value: encoder(r.Value), Timestamp: r.Time}
		for _, h := range r.Headers {
			messages[i].Headers = append(messages[i].Headers, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
		}
	}
	return messages
}

// send sends, and says why the first one failed.
func send(p sarama.SyncProducer, messages []*sarama.ProducerMessage) error {
	err := p.SendMessages(messages)
	var each sarama.ProducerErrors
	if errors.As(err, &each) && len(each) > 0 {
		err = fmt.Errorf("%w: %w", err, each[0].Err)
	}
	return err
}

// encoder keeps null and empty apart.
func encoder(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(b)
}

func (d driver) Read(ctx context.Context, token, topic string, n int, offsets ...int64) ([]gokit.Record, error) {
	if err := d.cannotRead(); err != nil {
		return nil, err
	}
	c, err := sarama.NewConsumer([]string{gokit.Bootstrap()}, d.config(token))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var out []gokit.Record
	for _, offset := range offsets {
		p, err := c.ConsumePartition(topic, 0, offset)
		if err != nil {
			return out, err
		}
		records, err := take(ctx, p, n)
		out = append(out, records...)
		if err := errors.Join(err, p.Close()); err != nil {
			return out, err
		}
	}
	return out, nil
}

func take(ctx context.Context, p sarama.PartitionConsumer, n int) (out []gokit.Record, err error) {
	for len(out) < n {
		select {
		case m := <-p.Messages():
			r := gokit.Record{Offset: m.Offset, Key: m.Key, Value: m.Value, Time: m.Timestamp}
			for _, h := range m.Headers {
				r.Headers = append(r.Headers, gokit.Header{Name: string(h.Key), Value: h.Value})
			}
			out = append(out, r)
		case err := <-p.Errors():
			return out, err
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
	return out, nil
}

func (d driver) OffsetAt(_ context.Context, token, topic string, at time.Time) (int64, error) {
	return d.offset(token, topic, at.UnixMilli())
}

func (d driver) End(_ context.Context, token, topic string) (int64, error) {
	return d.offset(token, topic, sarama.OffsetNewest)
}

func (d driver) offset(token, topic string, at int64) (int64, error) {
	if !d.version.IsAtLeast(sarama.V0_10_1_0) {
		return 0, gokit.Skip("it asks for ListOffsets 0, which answers with offsets of segments; ours starts with 1 (V0_10_1_0)")
	}
	c, err := d.client(token)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.GetOffset(topic, 0, at)
}

func (d driver) Topics(_ context.Context, token string) ([]string, error) {
	c, err := d.client(token)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Topics()
}
