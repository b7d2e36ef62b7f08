package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// Cell and gateway restart under a running producer and a running consumer. What
// was acknowledged is in the log, at the offset that was told, and the consumer
// sees all of it.
func TestRestarts(t *testing.T) {
	// A cut, and a login that cannot be checked, may be the first thing a new
	// connection sees; franz-go gives up on that unless it is told not to. A drain
	// never looks like that.
	endsAnywhere := []kgo.Opt{kgo.AlwaysRetryEOF()}
	for _, c := range []struct {
		name  string
		grace time.Duration // how long a stopping gateway waits for requests
		down  func(*testing.T, *rig.Rig)
		opts  []kgo.Opt // of the clients
	}{
		{"cell", time.Minute, func(t *testing.T, r *rig.Rig) {
			r.StopCell(t)
			r.StartCell(t)
		}, nil},
		{"gateway drained", time.Minute, func(t *testing.T, r *rig.Rig) {
			r.StopGateway(t)
			r.StartGateway(t)
		}, nil},
		{"gateway cut", 0, func(t *testing.T, r *rig.Rig) {
			r.StopGateway(t)
			r.StartGateway(t)
		}, endsAnywhere},
		{"both", time.Minute, func(t *testing.T, r *rig.Rig) {
			r.StopCell(t)
			r.StopGateway(t)
			r.StartCell(t)
			r.StartGateway(t)
		}, endsAnywhere},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rig.Start(t, func(o *rig.Options) {
				o.Config = func(cfg *config.Config) { cfg.DrainGrace = c.grace }
			})
			throughThree(t, r, c.name == "cell", func() { c.down(t, r) }, c.opts...)
		})
	}
}

// Connections between gateway and cell break with calls under way, so that pushes
// end with nobody knowing what became of them: they are sent again, and may be
// written twice.
func TestLostAnswers(t *testing.T) {
	var p *inject.Proxy
	r := rig.Start(t, rig.WithFaults(t, &p))
	throughThree(t, r, true, func() {
		rig.LoseAnswer(t, p, "/api/v1/push")()
		rig.LoseAnswer(t, p, "/api/v1/fetch")()
		p.Cut()
	})
}

// throughThree runs a load through three outages. Where the producer keeps its
// connection (connected) it is also held to its order: on a new connection a
// client may send a later batch first, and a gateway that has not seen the
// producer before takes it.
func throughThree(t *testing.T, r *rig.Rig, connected bool, outage func(), opts ...kgo.Opt) {
	t.Helper()
	makeTopic(t, r, rig.Acme, "t")
	ctx, cancel := context.WithTimeout(context.Background(), 2*rig.Patience)
	defer cancel()
	load := startLoad(ctx, t, r, connected, opts)
	for range 3 {
		load.advance(200)
		outage()
	}
	load.advance(200)
	load.finish()
}

const (
	loadPartitions = 4
	endMark        = "end"
)

// load is a producer and a consumer that run beside whatever the test does.
type load struct {
	t         *testing.T
	r         *rig.Rig
	ctx       context.Context
	connected bool // the producer keeps its connection
	stop      chan struct{}
	producing sync.WaitGroup
	acked     atomic.Int64

	mu   sync.Mutex // guards sent
	sent []*kgo.Record

	consumer *kgo.Client
	seen     chan map[string]bool
}

// impatient clients look again soon: a test waits for every pause of theirs.
func impatient() []kgo.Opt {
	return []kgo.Opt{
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.RetryTimeout(2 * rig.Patience),
		kgo.RequestRetries(1 << 20),
		kgo.FetchMaxWait(time.Second),
	}
}

func startLoad(ctx context.Context, t *testing.T, r *rig.Rig, connected bool, opts []kgo.Opt) *load {
	t.Helper()
	l := &load{t: t, r: r, ctx: ctx, connected: connected, stop: make(chan struct{}), seen: make(chan map[string]bool, 1)}
	p := r.Kafka(t, rig.Produce, append(append(impatient(), opts...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(1000),
		kgo.ProducerOnDataLossDetected(func(topic string, partition int32) {
			if connected {
				t.Errorf("the producer was told that records of %s/%d are lost", topic, partition)
			}
		}))...)
	for partition := range int32(loadPartitions) {
		l.producing.Add(1)
		go l.produce(p, partition)
	}
	start := map[int32]kgo.Offset{}
	for partition := range int32(loadPartitions) {
		start[partition] = kgo.NewOffset().At(0)
	}
	l.consumer = r.Kafka(t, rig.Consume, append(append(impatient(), opts...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": start}))...)
	go l.consume()
	return l
}

// produce keeps some records of one partition in flight until it is stopped.
func (l *load) produce(p *kgo.Client, partition int32) {
	defer l.producing.Done()
	room := make(chan struct{}, 50)
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			for range cap(room) { // every answer is in
				room <- struct{}{}
			}
			return
		case room <- struct{}{}:
		}
		rec := &kgo.Record{Topic: "t", Partition: partition, Value: fmt.Appendf(nil, "%d/%06d", partition, i)}
		p.Produce(l.ctx, rec, func(rec *kgo.Record, err error) {
			defer func() { <-room }()
			if err != nil {
				l.t.Errorf("%s: %v", rec.Value, err)
				return
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.sent = append(l.sent, rec)
			l.acked.Add(1)
		})
	}
}

// consume reads until it has met the end of every partition.
func (l *load) consume() {
	seen, ended := map[string]bool{}, map[int32]bool{}
	defer func() { l.seen <- seen }()
	for l.ctx.Err() == nil && len(ended) < loadPartitions {
		l.consumer.PollFetches(l.ctx).EachRecord(func(rec *kgo.Record) {
			if string(rec.Value) == endMark {
				ended[rec.Partition] = true
			}
			seen[string(rec.Value)] = true
		})
	}
}

// advance waits until n more records are acknowledged.
func (l *load) advance(n int64) {
	l.t.Helper()
	want := l.acked.Load() + n
	rig.Eventually(l.t, "acknowledged records", func() bool { return l.acked.Load() >= want })
}

// finish stops producing and compares what was acknowledged with what is there.
func (l *load) finish() {
	l.t.Helper()
	close(l.stop)
	l.producing.Wait()
	got := readAll(l.t, l.r, rig.Acme, "t")
	l.mu.Lock()
	sent := l.sent
	l.mu.Unlock()
	first := map[string]int64{}
	for partition := range int32(loadPartitions) {
		var values []string
		for _, rec := range got[partition] {
			if _, again := first[string(rec.Value)]; !again {
				first[string(rec.Value)] = rec.Offset
				values = append(values, string(rec.Value))
			}
		}
		if l.connected && !slices.IsSorted(values) {
			l.t.Errorf("partition %d is not in the producer's order", partition)
		}
	}
	lost, moved := 0, 0
	for _, rec := range sent {
		if _, ok := first[string(rec.Value)]; !ok {
			lost++
		} else if rec.Offset >= 0 && string(got[rec.Partition][rec.Offset].Value) != string(rec.Value) {
			moved++
		}
	}
	if lost+moved > 0 {
		l.t.Errorf("of %d acknowledged records %d are lost and %d are at another offset", len(sent), lost, moved)
	}
	total := 0
	for _, records := range got {
		total += len(records)
	}
	l.t.Logf("%d records acknowledged, %d written twice", len(sent), total-len(first))
	l.wantSeen(first)
}

// wantSeen waits for the running consumer to come to the end of the log, where it
// ends, and looks for what it has missed.
func (l *load) wantSeen(stored map[string]int64) {
	l.t.Helper()
	p := l.r.Kafka(l.t, rig.Produce, append(impatient(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	for partition := range int32(loadPartitions) {
		end := &kgo.Record{Topic: "t", Partition: partition, Value: []byte(endMark)}
		if err := p.ProduceSync(l.ctx, end).FirstErr(); err != nil {
			l.t.Fatal(err)
		}
	}
	select {
	case seen := <-l.seen:
		for value := range stored {
			if !seen[value] {
				l.t.Errorf("the consumer has not seen %s", value)
			}
		}
	case <-l.ctx.Done():
		l.t.Error("the consumer does not come to the end of the log")
	}
}
