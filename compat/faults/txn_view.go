package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/compat/faults/history"
)

// quietGateway is the gateway through which the runner itself writes and reads:
// clients do not know it, and no fault meets it but those of the cell.
const quietGateway = 1

// kafka is a client of the runner's own at one of the gateways, past the lane.
func (s *system) kafka(gateway int, opts ...kgo.Opt) (*kgo.Client, error) {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, s.at[gateway].Addr())
	}
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.at[gateway].Addr()), kgo.Dialer(dial), kgo.AlwaysRetryEOF(),
		kgo.SASL(plain.Auth{User: "runner", Pass: s.token}.AsMechanism()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, opts...)...)
}

// written is a record of the output.
type written struct {
	number int
	by     string // <transactional id>/<life>/<number>
}

// view writes the input, follows the output, and looks at what the group has
// committed.
type view struct {
	c     *kgo.Client
	adm   *kadm.Client
	names names

	stop   context.CancelFunc
	ended  sync.WaitGroup
	looked history.History // by the onlooker, until it has ended

	mu      sync.Mutex // guards the fields below
	log     [txnPartitions][]written
	seen    map[int]bool
	odd     []string
	changed chan struct{}
}

// onlooker is the client of looks in a history; workers are those before it.
const onlooker = 9

func openView(ctx context.Context, s *system, n names) (*view, error) {
	start := map[int32]kgo.Offset{}
	for p := range int32(txnPartitions) {
		start[p] = kgo.NewOffset().AtStart()
	}
	c, err := s.kafka(quietGateway,
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(300*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{n.output: start}))
	if err != nil {
		return nil, err
	}
	v := &view{c: c, adm: kadm.NewClient(c), names: n, seen: make(map[int]bool), changed: make(chan struct{})}
	ctx, v.stop = context.WithCancel(ctx)
	v.ended.Add(2)
	go v.follow(ctx)
	go v.watch(ctx)
	return v, nil
}

func (v *view) close() {
	v.stop()
	v.ended.Wait()
	v.c.Close()
}

// feed writes the numbers from … to−1 into the input.
func (v *view) feed(ctx context.Context, from, to int) error {
	records := make([]*kgo.Record, 0, to-from)
	for n := from; n < to; n++ {
		records = append(records, &kgo.Record{Topic: v.names.input, Partition: int32(n % txnPartitions), Value: []byte(strconv.Itoa(n))})
	}
	return v.c.ProduceSync(ctx, records...).FirstErr()
}

// follow reads the output as it grows.
func (v *view) follow(ctx context.Context) {
	defer v.ended.Done()
	for ctx.Err() == nil {
		for r := range v.c.PollFetches(ctx).RecordsAll() { // what fails is asked again
			v.take(r)
		}
	}
}

func (v *view) take(r *kgo.Record) {
	v.mu.Lock()
	defer v.mu.Unlock()
	word, by, _ := strings.Cut(string(r.Value), " ")
	n, err := strconv.Atoi(word)
	log := &v.log[r.Partition]
	if err != nil || int32(n%txnPartitions) != r.Partition || r.Offset != int64(len(*log)) {
		v.odd = append(v.odd, fmt.Sprintf("partition %d, offset %d holds %q", r.Partition, r.Offset, r.Value))
		n = -1
	}
	*log = append(*log, written{n, by})
	v.seen[n] = true
	close(v.changed)
	v.changed = make(chan struct{})
}

// await waits until something is so of the output.
func (v *view) await(ctx context.Context, w *worker, what string, so func() bool) error {
	for {
		v.mu.Lock()
		ok, changed := so(), v.changed
		v.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-w.exited:
			return w.died()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
	}
}

// below reports whether every number below n has come.
func (v *view) below(n int) bool {
	for i := range n {
		if !v.seen[i] {
			return false
		}
	}
	return true
}

// lookEvery is how often the onlooker looks.
const lookEvery = 100 * time.Millisecond

// watch looks, now and then, at what the group has committed and how long the
// output is: a commit is whole in every look, or not there at all.
func (v *view) watch(ctx context.Context) {
	defer v.ended.Done()
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			_ = v.lookAtOffsets(ctx, &v.looked) // in the middle of a fault there may be no answer
			_ = v.lookAtEnds(ctx, &v.looked)
		}
	}
}

func (v *view) lookAtOffsets(ctx context.Context, h *history.History) error {
	began := time.Now()
	offsets, err := v.committed(ctx)
	if err == nil {
		h.Look(onlooker, history.Span{Call: began, Return: time.Now()}, history.Offsets(offsets))
	}
	return err
}

func (v *view) lookAtEnds(ctx context.Context, h *history.History) error {
	began := time.Now()
	ends, err := v.adm.ListEndOffsets(ctx, v.names.output)
	if err = errors.Join(err, ends.Error()); err != nil {
		return err
	}
	at := history.Span{Call: began, Return: time.Now()}
	ends.Each(func(o kadm.ListedOffset) {
		h.Look(onlooker, at, history.End{Partition: o.Partition, Records: int(o.Offset)})
	})
	return nil
}

// committed is what the group has committed of every partition of the input.
func (v *view) committed(ctx context.Context) (map[int32]int64, error) {
	got, err := v.adm.FetchOffsets(ctx, v.names.group)
	if err = errors.Join(err, got.Error()); err != nil {
		return nil, err
	}
	offsets := make(map[int32]int64)
	for p := range int32(txnPartitions) {
		o, ok := got.Lookup(v.names.input, p)
		if offsets[p] = o.At; !ok {
			offsets[p] = 0
		}
	}
	return offsets, nil
}

// whole waits until all of the output has been read, and gives it.
func (v *view) whole(ctx context.Context, w *worker) ([txnPartitions][]written, error) {
	ends, err := v.adm.ListEndOffsets(ctx, v.names.output)
	if err = errors.Join(err, ends.Error()); err != nil {
		return v.log, err
	}
	err = v.await(ctx, w, "the end of the output", func() bool {
		whole := true
		ends.Each(func(o kadm.ListedOffset) { whole = whole && len(v.log[o.Partition]) >= int(o.Offset) })
		return whole
	})
	return v.log, err
}
