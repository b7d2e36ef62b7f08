package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lookEvery is how many records are written between two looks at the clock.
const lookEvery = 16

// producers write the records of a load.
type producers struct {
	clients []*kgo.Client
	makers  []*maker // of each client
	counts  counts
	spec    Spec
	failed  failure
}

// newProducers connects them, makes the topics, and lets each client write a
// record to each: connections, logins, producer ids and what a client has to
// know of a topic are not measured.
func newProducers(ctx context.Context, spec Spec) (*producers, error) {
	p, values := &producers{spec: spec}, newPool(spec.RecordBytes)
	kind, err := codec(spec.Codec)
	if err != nil {
		return nil, err
	}
	n := max(spec.Clients, 1)
	opts := []kgo.Opt{
		kgo.ProducerBatchCompression(kind), kgo.ProducerLinger(linger), kgo.MaxBufferedBytes(bufferedBytes / n),
		kgo.MaxBufferedRecords(max(bufferedBytes/n/spec.RecordBytes, 1)),
	}
	if spec.Kind == Latencies {
		opts = append(opts, kgo.ProducerLinger(0))
	}
	if n > 1 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	for i := range n {
		c, err := spec.Peer.client(&p.counts, opts...)
		if err != nil {
			p.close()
			return nil, err
		}
		p.clients, p.makers = append(p.clients, c), append(p.makers, newMaker(values, i))
	}
	if err := p.warm(ctx); err != nil {
		p.close()
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	return p, nil
}

func (p *producers) warm(ctx context.Context) error {
	if err := makeTopics(ctx, p.clients[0], p.spec.Partitions, p.spec.names()...); err != nil {
		return err
	}
	for i, c := range p.clients {
		var first []*kgo.Record
		for _, topic := range p.spec.names() {
			first = append(first, p.record(i, topic))
		}
		if err := c.ProduceSync(ctx, first...).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// record is the next record of a client; of several, each has a partition.
func (p *producers) record(client int, topic string) *kgo.Record {
	r := p.makers[client].record(topic)
	if len(p.clients) > 1 {
		r.Partition = int32(client % p.spec.Partitions)
	}
	return r
}

// total is what all clients have made so far.
func (p *producers) total() (all Sum) {
	for _, m := range p.makers {
		all.add(m.sum)
	}
	return all
}

func (p *producers) close() {
	for _, c := range p.clients {
		c.Close()
	}
}

// write lets all clients write for the load's time and waits for the last
// acknowledgement. It returns what was acknowledged.
func (p *producers) write(ctx context.Context) (Sum, error) {
	before := p.total()
	var done sync.WaitGroup
	for i := range p.clients {
		done.Go(func() { p.stream(ctx, i) })
	}
	done.Wait()
	return p.total().less(before), p.failed.err()
}

// stream is one client's part.
func (p *producers) stream(ctx context.Context, client int) {
	c, sum, topics := p.clients[client], &p.makers[client].sum, p.spec.names()
	most := sum.Bytes + p.spec.MaxBytes/int64(len(p.clients))
	until := time.Now().Add(time.Duration(p.spec.Seconds * float64(time.Second)))
	note := func(_ *kgo.Record, err error) { p.failed.note(err) }
	for i := 0; sum.Bytes < most; i++ {
		if i%lookEvery == 0 && (time.Now().After(until) || p.failed.err() != nil) {
			break
		}
		c.Produce(ctx, p.record(client, topics[i%len(topics)]), note)
	}
	p.failed.note(c.Flush(ctx))
}

func produce(ctx context.Context, spec Spec, s *steps) error {
	p, err := newProducers(ctx, spec)
	if err != nil {
		return err
	}
	defer p.close()
	if err := s.ready(); err != nil {
		return err
	}
	p.counts.reset()
	begin := time.Now()
	sum, err := p.write(ctx)
	if err != nil {
		return err
	}
	r := Result{Seconds: time.Since(begin).Seconds(), Sum: sum, Total: p.total()}
	p.counts.into(&r)
	return s.done(r)
}
