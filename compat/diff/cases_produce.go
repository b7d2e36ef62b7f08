package main

import (
	"encoding/binary"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// partRef is one partition of a Produce request.
type partRef struct {
	topic     string
	partition int32
	records   []byte
}

func part(topic string, partition int32, records []byte) partRef {
	return partRef{topic, partition, records}
}

// produceOf makes a Produce request; neighbours with one topic share its entry.
func produceOf(acks int16, parts ...partRef) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 5000
	for _, p := range parts {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != p.topic {
			t := kmsg.NewProduceRequestTopic()
			t.Topic = p.topic
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p.partition, p.records
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, rp)
	}
	return req
}

// produceServed is the first version of Produce that Apache Kafka 4 serves. It
// announces those below for the sake of librdkafka, and closes on them.
const produceServed = 3

func (s *suite) produce() {
	row := s.row(0)
	for ; row.Min < produceServed; row.Min++ {
		topic, p := s.target()
		s.add(row, row.Min, "a version of old", ask(produceOf(-1, part(topic, p, records(s.now, []string{"one"}))))...)
	}
	for _, v := range every(row) {
		s.produceGood(v)
	}
	for _, v := range ends(row) {
		s.produceWhere(v)
		s.produceBatches(v)
		s.sequences(v, true)
		s.sequences(v, false)
	}
}

func (s *suite) produceGood(v int16) {
	row := s.row(0)
	good := records(s.now, []string{"one", "two"})
	for _, acks := range []int16{-1, 1, 0} {
		topic, p := s.target()
		steps := ask(produceOf(acks, part(topic, p, good)), produceOf(acks, part(topic, p, good)))
		for i := range steps {
			steps[i].mute = acks == 0
		}
		s.add(row, v, "good, acks "+map[int16]string{-1: "all", 1: "1", 0: "0"}[acks], steps...)
	}
	for codec := range int16(5) {
		topic, p := s.target()
		s.add(row, v, "codec "+string(rune('0'+codec)), ask(produceOf(-1, part(topic, p, records(s.now, []string{"one", "two"}, packed(codec)))))...)
	}
	a, pa := s.target()
	b, pb := s.target()
	s.add(row, v, "two partitions", ask(produceOf(-1, part(a, pa, good), part(b, pb, good)))...)
	s.add(row, v, "no topics", ask(produceOf(-1))...)
	s.add(row, v, "no topics, acks 0", step{req: produceOf(0), mute: true})
	s.add(row, v, "no topics, acks 5", ask(produceOf(5))...)
}

// produceWhere are good batches for bad places, and bad requests around them.
func (s *suite) produceWhere(v int16) {
	row := s.row(0)
	good := records(s.now, []string{"one"})
	try := func(name string, req *kmsg.ProduceRequest) { s.add(row, v, name, ask(req)...) }
	topic, p := s.target()
	for _, acks := range []int16{2, -2, 32767, -32768} {
		try("acks "+map[int16]string{2: "2", -2: "-2", 32767: "32767", -32768: "-32768"}[acks], produceOf(acks, part(topic, p, good)))
	}
	try("acks 2, missing topic", produceOf(2, part(missing, 0, good)))
	s.add(s.row(1), s.row(1).Max, "after acks 2, missing topic", ask(fetchOf(readAt(missing, 0, 0)))...)
	try("partition -1", produceOf(-1, part(topic, -1, good)))
	try("partition 4", produceOf(-1, part(topic, 4, good)))
	try("partition huge", produceOf(-1, part(topic, 1<<31-1, good)))
	try("one good, one bad partition", produceOf(-1, part(topic, p, good), part(topic, 99, good)))
	try("a hidden topic", produceOf(-1, part(hiddenTopic, 0, good)))
	try("a topic that is not there", produceOf(-1, part("by-produce-"+string(rune('a'+v)), 0, good)))
	s.add(row, v, "a hidden topic, acks 0", step{req: produceOf(0, part(hiddenTopic, 0, good)), mute: true})
	s.add(row, v, "partition 4, acks 0", step{req: produceOf(0, part(topic, 4, good)), mute: true})
	s.add(row, v, "acks 2 and nothing bad", step{req: produceOf(2), mute: true})
	for _, kind := range illegalNames() {
		try("illegal "+kind, produceOf(-1, part(illegal()[kind], 0, good)))
	}
	t2, p2 := s.target()
	twice := produceOf(-1, part(t2, p2, good), part(t2, p2, records(s.now, []string{"again"})))
	try("a partition twice", twice)
	t3, p3 := s.target()
	apart := produceOf(-1, part(t3, p3, good), part(readTopic+"-not", 0, good), part(t3, p3, good))
	apart.Topics[1].Topic, apart.Topics[1].Partitions = topic, produceOf(-1, part(topic, p, good)).Topics[0].Partitions
	try("a topic twice", apart)
	none := produceOf(-1, part(topic, p, good))
	none.Topics[0].Partitions = nil
	try("a topic without partitions", none)
	for name, id := range map[string]string{"empty": "", "given": "txn"} {
		tx, px := s.target()
		req := produceOf(-1, part(tx, px, good))
		req.TransactionID = &id
		try("transactional id "+name, req)
	}
	for name, ms := range map[string]int32{"0": 0, "-1": -1, "huge": 1<<31 - 1} {
		tx, px := s.target()
		req := produceOf(-1, part(tx, px, good))
		req.TimeoutMillis = ms
		try("timeout "+name, req)
	}
}

// produceBatches are bad records for good places.
func (s *suite) produceBatches(v int16) {
	row := s.row(0)
	one := []string{"one"}
	try := func(name string, raw []byte) {
		topic, p := s.target()
		s.add(row, v, name, ask(produceOf(-1, part(topic, p, raw)))...)
	}
	header := func(name string, edit func(*kmsg.RecordBatch)) {
		try(name, records(s.now, []string{"one", "two"}, edit))
	}
	good := func() []byte { return records(s.now, one) }

	tn, pn := s.target()
	s.add(row, v, "null records", step{req: produceOf(-1, part(tn, pn, nil)), slow: true})
	try("empty records", []byte{})
	try("one byte", []byte{0})
	try("sixty bytes of nothing", make([]byte, 60))
	try("a header's length of nothing", make([]byte, 61))
	try("a wrong CRC", flip(good(), 17))
	try("a wrong byte in a record", flip(good(), 65))
	try("a batch that is cut", good()[:70])
	try("a header that is cut", good()[:40])
	try("a length too large", at(good(), 8, 0, 0, 1, 0))
	try("a length too small", at(good(), 8, 0, 0, 0, 10))
	try("a length of zero", at(good(), 8, 0, 0, 0, 0))
	try("a negative length", at(good(), 8, 0xff, 0xff, 0xff, 0xff))
	try("magic 0", at(good(), 16, 0))
	try("magic 1", at(good(), 16, 1))
	try("magic 3", at(good(), 16, 3))
	try("magic -1", at(good(), 16, 0xff))
	try("bytes after the batch", append(good(), 1, 2, 3))
	try("two batches", append(good(), good()...))
	header("a base offset", func(b *kmsg.RecordBatch) { b.FirstOffset = 1000 })
	header("a negative base offset", func(b *kmsg.RecordBatch) { b.FirstOffset = -5 })
	header("a leader epoch", func(b *kmsg.RecordBatch) { b.PartitionLeaderEpoch = 77 })
	header("count too large", func(b *kmsg.RecordBatch) { b.NumRecords = 3 })
	header("count too small", func(b *kmsg.RecordBatch) { b.NumRecords = 1 })
	header("count zero", func(b *kmsg.RecordBatch) { b.NumRecords = 0 })
	header("count negative", func(b *kmsg.RecordBatch) { b.NumRecords = -1 })
	header("last offset delta too large", func(b *kmsg.RecordBatch) { b.LastOffsetDelta = 5 })
	header("last offset delta too small", func(b *kmsg.RecordBatch) { b.LastOffsetDelta = 0 })
	header("count and delta too large", func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = 3, 2 })
	header("count and delta too small", func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = 1, 0 })
	header("a control batch", func(b *kmsg.RecordBatch) { b.Attributes |= 0x20 })
	header("a transactional batch", func(b *kmsg.RecordBatch) { b.Attributes |= 0x10 })
	header("transactional with a producer", func(b *kmsg.RecordBatch) { b.Attributes |= 0x10; by(99, 0, 0)(b) })
	header("log append time", func(b *kmsg.RecordBatch) { b.Attributes |= 0x08 })
	header("a delete horizon", func(b *kmsg.RecordBatch) { b.Attributes |= 0x40 })
	header("unknown attributes", func(b *kmsg.RecordBatch) { b.Attributes |= 0x700 })
	for _, codec := range []int16{5, 6, 7} {
		header("codec "+string(rune('0'+codec)), packed(codec))
	}
	for codec := int16(1); codec <= 4; codec++ {
		header("codec "+string(rune('0'+codec))+" over plain bytes", func(b *kmsg.RecordBatch) { b.Attributes |= codec })
	}
	empty := records(s.now, nil)
	try("no records in a batch", empty)
	raw := func(name string, recs ...[]byte) {
		header(name, func(b *kmsg.RecordBatch) {
			b.Records, b.NumRecords, b.LastOffsetDelta = nil, int32(len(recs)), int32(len(recs))-1
			for _, r := range recs {
				b.Records = append(b.Records, r...)
			}
		})
	}
	k, val := []byte("k"), []byte("v")
	raw("null key", record(0, nil, val, nil))
	raw("empty key", record(0, []byte{}, val, nil))
	raw("null value", record(0, k, nil, nil))
	raw("null key and value", record(0, nil, nil, nil))
	raw("offset deltas with a gap", record(0, k, val, nil), record(2, k, val, nil))
	raw("offset deltas twice the same", record(0, k, val, nil), record(0, k, val, nil))
	raw("offset deltas backwards", record(1, k, val, nil), record(0, k, val, nil))
	raw("a header", record(0, k, val, []byte{2, 2, 'h', 2, 'x'}))
	raw("a header without a value", record(0, k, val, []byte{2, 2, 'h', 1}))
	raw("a header without a name", record(0, k, val, []byte{2, 1, 2, 'x'}))
	raw("a header with an empty name", record(0, k, val, []byte{2, 0, 2, 'x'}))
	raw("a header twice", record(0, k, val, []byte{4, 2, 'h', 2, 'x', 2, 'h', 2, 'y'}))
	raw("a header's name that is not UTF-8", record(0, k, val, []byte{2, 2, 0xff, 2, 'x'}))
	raw("a negative count of headers", record(0, k, val, []byte{1}))
	raw("a record that is cut", record(0, k, val, nil)[:4])
	raw("a record with bytes left over", lengthen(record(0, k, val, nil)))
	s.produceTimes(v)
	try("a record of 2 MiB", records(s.now, []string{strings.Repeat("x", 2<<20)}))
	try("a record of 900 KiB", records(s.now, []string{strings.Repeat("x", 900<<10)}))
}

func (s *suite) produceTimes(v int16) {
	const hour, year = 3_600_000, 365 * 24 * 3_600_000
	for _, c := range []struct {
		name string
		at   int64
	}{
		{"-1", -1},
		{"-2", -2},
		{"-3", -3},
		{"-5", -5},
		{"the smallest", -1 << 63},
		{"0", 0},
		{"in half an hour", s.now + hour/2},
		{"in two hours", s.now + 2*hour},
		{"in ten years", s.now + 10*year},
		{"the largest", 1<<63 - 1},
		{"a year ago", s.now - year},
		{"ten years ago", s.now - 10*year},
	} {
		topic, p := s.target()
		raw := records(c.at, []string{"one"})
		read := fetchOf(readAt(topic, p, 0))
		s.add(s.row(0), v, "time "+c.name, ask(produceOf(-1, part(topic, p, raw)))...)
		s.add(s.row(1), s.row(1).Max, "after time "+c.name, ask(read)...)
	}
	topic, p := s.target()
	s.add(s.row(0), v, "a largest time that is not true", ask(produceOf(-1, part(topic, p,
		records(s.now, []string{"one", "two"}, func(b *kmsg.RecordBatch) { b.MaxTimestamp += 5000 }))))...)
}

func flip(b []byte, i int) []byte { b[i] ^= 1; return b }

func at(b []byte, i int, with ...byte) []byte { copy(b[i:], with); return b }

// lengthen gives a record one byte more than its fields need.
func lengthen(r []byte) []byte {
	n, k := binary.Varint(r)
	return append(append(binary.AppendVarint(nil, n+1), r[k:]...), 0)
}
