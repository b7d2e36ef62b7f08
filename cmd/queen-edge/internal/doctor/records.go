package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
)

// written is the record that was produced.
type written struct {
	value  []byte // no other record's
	offset int64  // −1: not told
}

// skip leaves a step out, and says why.
func (d *run) skip(k steps.Kind) bool {
	switch {
	case slices.Contains(d.o.Skip, k.Name):
		d.report.Skip("left out by --skip", k)
	case d.o.Topic == "" && k.Name != commit.Name:
		d.report.Skip("needs --topic", k)
	default:
		return false
	}
	return true
}

// produce writes one record to partition 0 of the topic.
func (d *run) produce(ctx context.Context, c cluster) (written, bool) {
	if d.skip(produce) {
		return written{}, false
	}
	ctx, cancel := d.step(ctx)
	defer cancel()
	now := time.Now()
	w := written{value: fmt.Appendf(nil, "queen-edge doctor %s %s", now.UTC().Format(time.RFC3339), rand.Text()), offset: -1}
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 7, -1, int32(d.o.Timeout.Milliseconds())
	t := kmsg.NewProduceRequestTopic()
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = oneRecord(w.value, now)
	t.Topic, t.Partitions = d.o.Topic, []kmsg.ProduceRequestTopicPartition{p}
	req.Topics = []kmsg.ProduceRequestTopic{t}
	got, err := d.broker(ctx, c.leader).ask(ctx, req)
	if err != nil {
		return w, d.report.Add(produce, d.broken("Produce", err))
	}
	resp := got.(*kmsg.ProduceResponse)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return w, d.report.Add(produce, d.broken("Produce", errShape))
	}
	told := &resp.Topics[0].Partitions[0]
	if told.ErrorCode != 0 {
		f := refusedWith("Produce to "+d.o.Topic, told.ErrorCode, "produce")
		if told.ErrorMessage != nil && *told.ErrorMessage != "" {
			f.Seen += "; " + *told.ErrorMessage
		}
		return w, d.report.Add(produce, f)
	}
	w.offset = told.BaseOffset
	return w, d.report.Add(produce, fine(fmt.Sprintf("one record of %d bytes is at offset %d of partition 0 of %s", len(w.value), w.offset, d.o.Topic)))
}

// oneRecord is a batch of one record, uncompressed (KIP-98).
func oneRecord(value []byte, at time.Time) []byte {
	r := kmsg.Record{Key: []byte(clientID), Value: value}
	r.Length = int32(len(r.AppendTo(nil)) - 1) // a length of 0 takes one byte
	records := r.AppendTo(nil)
	ms := at.UnixMilli()
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, FirstTimestamp: ms, MaxTimestamp: ms,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1, Records: records,
	}
	const before, length, crcAt, crcEnd = 12, 8, 17, 21 // of the batch's header
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[length:], uint32(len(raw)-before))
	binary.BigEndian.PutUint32(raw[crcAt:], crc32.Checksum(raw[crcEnd:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// fetch reads the record again; where none was written, it reads from the start.
func (d *run) fetch(ctx context.Context, c cluster, w written, wrote bool) {
	if d.skip(fetch) {
		return
	}
	ctx, cancel := d.step(ctx)
	defer cancel()
	p := d.broker(ctx, c.leader)
	from := w.offset
	if !wrote || from < 0 {
		var f steps.Finding
		if from, f = d.start(ctx, p); f.Status != "" {
			d.report.Add(fetch, f)
			return
		}
	}
	for {
		records, next, f := d.read(ctx, p, from)
		switch {
		case f.Status != "":
			d.report.Add(fetch, f)
		case !wrote:
			d.report.Add(fetch, fine(fmt.Sprintf("%d bytes of records from offset %d on", len(records), from)))
		case bytes.Contains(records, w.value):
			d.report.Add(fetch, fine("the record has been read"))
		case ctx.Err() == nil:
			from = next
			continue
		default:
			d.report.Add(fetch, failed(causeNotRead, "the record that was just written did not come within "+d.o.Timeout.String(), "look at the gateway's log, and try again with --timeout"))
		}
		return
	}
}

// start is the first offset that can be read.
func (d *run) start(ctx context.Context, p *peer) (int64, steps.Finding) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 5, -1
	t := kmsg.NewListOffsetsRequestTopic()
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Timestamp, part.CurrentLeaderEpoch = -2, -1
	t.Topic, t.Partitions = d.o.Topic, []kmsg.ListOffsetsRequestTopicPartition{part}
	req.Topics = []kmsg.ListOffsetsRequestTopic{t}
	got, err := p.ask(ctx, req)
	if err != nil {
		return 0, d.broken("ListOffsets", err)
	}
	resp := got.(*kmsg.ListOffsetsResponse)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, d.broken("ListOffsets", errShape)
	}
	told := &resp.Topics[0].Partitions[0]
	if told.ErrorCode != 0 {
		return 0, refusedWith("ListOffsets of "+d.o.Topic, told.ErrorCode, "consume")
	}
	return told.Offset, steps.Finding{}
}

const (
	fetchBytes = 1 << 20
	fetchWait  = 500 * time.Millisecond
)

// read fetches once, without a session. next is where to go on.
func (d *run) read(ctx context.Context, p *peer, from int64) (records []byte, next int64, f steps.Finding) {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.SessionEpoch = 11, -1, -1
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(min(fetchWait, d.o.Timeout/2).Milliseconds()), 1, fetchBytes
	t := kmsg.NewFetchRequestTopic()
	part := kmsg.NewFetchRequestTopicPartition()
	part.FetchOffset, part.PartitionMaxBytes, part.CurrentLeaderEpoch = from, fetchBytes, -1
	t.Topic, t.Partitions = d.o.Topic, []kmsg.FetchRequestTopicPartition{part}
	req.Topics = []kmsg.FetchRequestTopic{t}
	got, err := p.ask(ctx, req)
	if err != nil {
		return nil, from, d.broken("Fetch", err)
	}
	resp := got.(*kmsg.FetchResponse)
	if resp.ErrorCode != 0 {
		return nil, from, refusedWith("Fetch", resp.ErrorCode, "consume")
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, from, d.broken("Fetch", errShape)
	}
	told := &resp.Topics[0].Partitions[0]
	if told.ErrorCode != 0 {
		return nil, from, refusedWith("Fetch of "+d.o.Topic, told.ErrorCode, "consume")
	}
	return told.RecordBatches, after(told.RecordBatches, from), steps.Finding{}
}

// after is the offset behind the batches of an answer. A record that was
// written without its offset being told is looked for from the start on.
func after(batches []byte, from int64) int64 {
	const lengthEnd, deltaAt, deltaEnd = 12, 23, 27
	for len(batches) >= deltaEnd {
		size := int64(binary.BigEndian.Uint32(batches[8:lengthEnd])) + lengthEnd
		if size > int64(len(batches)) {
			break // the last one may be cut
		}
		last := int64(binary.BigEndian.Uint64(batches)) + int64(binary.BigEndian.Uint32(batches[deltaAt:deltaEnd]))
		from = max(from, last+1)
		batches = batches[size:]
	}
	return from
}
