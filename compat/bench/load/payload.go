package load

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	seqBytes  = 8  // of a record's number
	seqText   = 16 // the same in hex: every value begins with it
	poolBytes = 4 << 20
	minPool   = 64 // values, of the largest records
	slabBytes = 1 << 20
	slabSize  = 256 // records
)

// pool is what values are taken from: lines of a log, the same in every run. It
// is larger than what any codec looks back.
type pool [][]byte

func newPool(size int) pool {
	r := rand.New(rand.NewPCG(2026, 12))
	p := make(pool, max(minPool, poolBytes/size))
	for i := range p {
		v := make([]byte, seqText, size+512)
		for len(v) < size {
			v = appendLine(v, r)
		}
		p[i] = v[:size]
	}
	return p
}

// appendLine adds a line as services write them: words out of few, numbers that
// differ, ids at random.
func appendLine(v []byte, r *rand.Rand) []byte {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	v = fmt.Appendf(v, " 2026-03-%02dT%02d:%02d:%02d.%03dZ %s %s-%d", 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000),
		pick("INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"),
		pick("checkout", "inventory", "payments", "search", "sessions", "shipping"), r.IntN(12))
	v = fmt.Appendf(v, " %s %s/%d %d in %d ms, user=%d trace=%016x", pick("GET", "GET", "POST", "PUT"),
		pick("/api/v1/orders", "/api/v1/carts", "/api/v2/items", "/health", "/login"), r.IntN(100_000),
		[]int{200, 200, 200, 201, 304, 404, 500}[r.IntN(7)], r.IntN(900), r.IntN(1_000_000), r.Uint64())
	return fmt.Appendf(v, " msg=%q\n", pick("request served", "cache miss, loaded from the store", "retry after timeout",
		"connection reset by upstream", "quota checked", "order accepted and handed to the warehouse"))
}

// Sum is what a set of records adds up to, in any order.
type Sum struct {
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"` // of values
	CRC     uint64 `json:"crc"`   // sum of the values' CRC-32C
}

func (s *Sum) add(o Sum) {
	s.Records += o.Records
	s.Bytes += o.Bytes
	s.CRC += o.CRC
}

// less is what was added since it was o.
func (s Sum) less(o Sum) Sum { return Sum{s.Records - o.Records, s.Bytes - o.Bytes, s.CRC - o.CRC} }

func (s *Sum) value(v []byte, table *crc32.Table) {
	s.Records++
	s.Bytes += int64(len(v))
	s.CRC += uint64(crc32.Checksum(v, table))
}

// maker makes records, each with a number of its own, and adds them up.
type maker struct {
	pool    pool
	size    int
	next    uint64
	sum     Sum
	table   *crc32.Table
	slab    []byte
	records []kgo.Record
}

// newMaker makes the records of one client: numbers of clients do not meet.
func newMaker(p pool, client int) *maker {
	return &maker{pool: p, size: len(p[0]), next: uint64(client) << 40, table: crc32.MakeTable(crc32.Castagnoli)}
}

func (m *maker) record(topic string) *kgo.Record {
	if len(m.slab) < m.size {
		m.slab = make([]byte, max(slabBytes/m.size, 1)*m.size)
	}
	if len(m.records) == 0 {
		m.records = make([]kgo.Record, slabSize)
	}
	v := m.slab[:m.size:m.size]
	m.slab = m.slab[m.size:]
	copy(v, m.pool[m.next%uint64(len(m.pool))])
	var seq [seqBytes]byte
	binary.BigEndian.PutUint64(seq[:], m.next)
	hex.Encode(v[:seqText], seq[:])
	m.next++
	m.sum.value(v, m.table)
	r := &m.records[0]
	m.records = m.records[1:]
	r.Topic, r.Value = topic, v
	return r
}

// reader adds up what is read, and sees that numbers of a partition only grow:
// nothing twice, nothing out of order.
type reader struct {
	sum   Sum
	table *crc32.Table
	last  map[place]uint64
}

type place struct {
	topic     string
	partition int32
}

func newReader() *reader {
	return &reader{table: crc32.MakeTable(crc32.Castagnoli), last: map[place]uint64{}}
}

func (r *reader) partition(topic string, partition int32, records []*kgo.Record) error {
	if len(records) == 0 {
		return nil
	}
	at := place{topic, partition}
	last, seen := r.last[at]
	for _, rec := range records {
		var raw [seqBytes]byte
		if len(rec.Value) < seqText {
			return fmt.Errorf("%s-%d@%d: a value of %d bytes", topic, partition, rec.Offset, len(rec.Value))
		}
		if _, err := hex.Decode(raw[:], rec.Value[:seqText]); err != nil {
			return fmt.Errorf("%s-%d@%d: %w", topic, partition, rec.Offset, err)
		}
		seq := binary.BigEndian.Uint64(raw[:])
		if seen && seq <= last {
			return fmt.Errorf("%s-%d@%d: record %d behind record %d", topic, partition, rec.Offset, seq, last)
		}
		last, seen = seq, true
		r.sum.value(rec.Value, r.table)
	}
	r.last[at] = last
	return nil
}

// names are the topics of a spec.
func (s Spec) names() []string {
	names := make([]string, max(s.Topics, 1))
	for i := range names {
		names[i] = fmt.Sprintf("%s-%03d", s.Name, i)
	}
	return slices.Clip(names)
}
