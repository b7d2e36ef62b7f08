package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

const readPatience = 2 * time.Minute

// judge reads the topic with a client of its own and compares it with what the
// producer was told.
func (w *trying) judge(ctx context.Context, topic string) error {
	logs, err := w.read(ctx, topic)
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.result.acked = w.p.acked
	v := verdict{offsets: w.p.offsets, seen: make(map[int]int64)}
	for _, numbers := range logs {
		v.log(numbers)
	}
	v.acknowledged(logs)
	w.result.duplicates = v.twice
	errs := v.problems
	switch {
	case w.p.acked < w.granted:
		errs = append(errs, fmt.Sprintf("%d of %d records were not acknowledged: %.200s", w.granted-w.p.acked, w.granted, strings.Join(w.p.failed, "; ")))
	case w.window > 0 && v.twice > 0:
		errs = append(errs, fmt.Sprintf("%d records were written twice", v.twice))
	case w.result.rounds < w.trial.rounds:
		errs = append(errs, "the fault did not strike in every round")
	case w.result.behind < w.client.inFlight-1:
		errs = append(errs, fmt.Sprintf("at most %d requests were behind the first batch", w.result.behind))
	}
	if len(w.p.odd) > 0 {
		errs = append(errs, fmt.Sprintf("the client said %q", w.p.odd[0]))
	}
	if len(errs) > 0 {
		return errors.New(strings.Join(errs, "; "))
	}
	return nil
}

// verdict is what the logs of a topic's partitions say.
type verdict struct {
	offsets  []int64       // by number, as they were acknowledged
	seen     map[int]int64 // offset at which a number came first
	twice    int
	problems []string
}

// log looks at one partition: what comes in it for the first time must be in
// order.
func (v *verdict) log(numbers []int) {
	last, wrong := -1, 0
	for offset, n := range numbers {
		if _, again := v.seen[n]; again {
			v.twice++
			continue
		}
		v.seen[n] = int64(offset)
		if n < last {
			wrong++
		}
		last = max(last, n)
	}
	if wrong > 0 {
		v.problems = append(v.problems, fmt.Sprintf("%d records came after a later one", wrong))
	}
}

// acknowledged looks for what the producer was told is there: in the log, and at
// the offset it was told.
func (v *verdict) acknowledged(logs [][]int) {
	lost, moved := 0, 0
	for n, offset := range v.offsets {
		if offset == unacked {
			continue
		}
		if _, ok := v.seen[n]; !ok {
			lost++
			continue
		}
		log := logs[n%partitions]
		if offset != noOffset && (offset >= int64(len(log)) || log[offset] != n) {
			moved++
		}
	}
	if lost > 0 {
		v.problems = append(v.problems, fmt.Sprintf("%d acknowledged records are lost", lost))
	}
	if moved > 0 {
		v.problems = append(v.problems, fmt.Sprintf("%d records are not at the offset that was acknowledged", moved))
	}
}

// read gives the numbers in every partitions, in the order of the log.
func (w *trying) read(ctx context.Context, topic string) ([][]int, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	start := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		start[p] = kgo.NewOffset().AtStart()
	}
	c, err := kgo.NewClient(
		kgo.SeedBrokers(w.s.lane.addr()), kgo.AlwaysRetryEOF(),
		kgo.SASL(plain.Auth{User: "judge", Pass: w.s.token}.AsMechanism()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}),
	)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, err
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	logs := make([][]int, partitions)
	for left > 0 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for rec := range fetches.RecordsAll() {
			word, _, _ := strings.Cut(string(rec.Value), " ")
			n, err := strconv.Atoi(word)
			if err != nil || int32(n%partitions) != rec.Partition || rec.Offset != int64(len(logs[rec.Partition])) {
				return nil, fmt.Errorf("partition %d, offset %d holds %q", rec.Partition, rec.Offset, rec.Value)
			}
			logs[rec.Partition] = append(logs[rec.Partition], n)
			left--
		}
	}
	return logs, nil
}
