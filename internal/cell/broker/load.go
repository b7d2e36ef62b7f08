package broker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// Load implements store.Machine: it makes the catalog from the index's rows.
func (m *machine) Load(s *store.Store) error {
	m.store = s
	v, err := s.Get([]byte{uidRow})
	if err != nil {
		return err
	}
	if v != nil {
		d := decoder{b: v}
		m.nextUID = d.uint()
		m.kept = m.nextUID
	}
	if err := m.loadKV(s); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	if err := eachRow(s, queueRows, m.loadQueue); err != nil {
		return fmt.Errorf("queues: %w", err)
	}
	if err := eachRow(s, partitionRows, m.loadPartition); err != nil {
		return fmt.Errorf("partitions: %w", err)
	}
	if err := m.loadEnds(s); err != nil {
		return fmt.Errorf("chunks: %w", err)
	}
	if err := eachRow(s, groupRows, m.loadGroup); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	if err := eachRow(s, cursorRows, m.loadCursor); err != nil {
		return fmt.Errorf("cursors: %w", err)
	}
	return eachRow(s, purgeRows, func(key, _ []byte) error {
		m.purge = append(m.purge, binary.BigEndian.Uint64(key[1:]))
		return nil
	})
}

func (m *machine) loadKV(s *store.Store) error {
	v, err := s.Get([]byte{versionRow})
	if err != nil {
		return err
	}
	if v != nil {
		d := decoder{b: v}
		m.nextVersion = d.int()
		m.keptVersion = m.nextVersion
	}
	return eachRow(s, usageRows, func(key, value []byte) error {
		d := decoder{b: value}
		t, u := Tenant(key[1:]), KVUsage{Rows: d.int(), Bytes: d.int()}
		m.usage[t] = u
		m.catalog.use(t, u)
		return d.err
	})
}

func eachRow(s *store.Store, kind byte, visit func(key, value []byte) error) error {
	var failed error
	err := eachRowIn(s, []byte{kind}, []byte{kind + 1}, func(key, value []byte) bool {
		failed = visit(key, value)
		return failed == nil
	})
	return errors.Join(failed, err)
}

// eachRowIn visits the rows from (inclusive) to (exclusive) until visit says
// no.
func eachRowIn(s *store.Store, from, to []byte, visit func(key, value []byte) bool) error {
	it, err := s.Rows(from, to)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if !visit(it.Key(), it.Value()) {
			break
		}
	}
	return it.Close()
}

func (m *machine) loadQueue(key, value []byte) error {
	o := op{uid: binary.BigEndian.Uint64(key[1:])}
	d := decoder{b: value}
	o.decodeQueueRow(&d)
	if d.err != nil {
		return d.err
	}
	q := o.queueOf()
	if err := json.Unmarshal(o.options, &q.options); err != nil {
		return err
	}
	q.plan.options = q.options
	m.addQueue(q)
	m.catalog.put(q, q.options)
	return nil
}

func (m *machine) loadPartition(key, value []byte) error {
	q := m.byUID[binary.BigEndian.Uint64(key[1:])]
	name, f, err := decodePartitionRow(value)
	if err != nil {
		return err
	}
	if q == nil {
		return fmt.Errorf("partition %q has no queue", name)
	}
	p := &partition{uid: binary.BigEndian.Uint64(key[9:]), name: name, queue: q, start: f.start, next: f.next}
	p.plan = partitionPlan(f)
	p.cut = f.before
	m.addPartition(p)
	q.publish(p)
	m.catalog.name(p)
	return nil
}

// loadEnds reads the first retained and the last chunk of every partition:
// they tell its bounds and its size.
func (m *machine) loadEnds(s *store.Store) error {
	it, err := s.Rows([]byte{chunkRows}, []byte{chunkRows + 1})
	if err != nil {
		return err
	}
	for _, p := range m.parts {
		var trimmed bool
		if trimmed, err = p.loadEnds(it); err != nil {
			break
		}
		if trimmed {
			m.trims = append(m.trims, p)
		}
	}
	return errors.Join(err, it.Close())
}

// loadEnds reports whether there are chunks below the partition's start.
func (p *partition) loadEnds(it *pebble.Iterator) (trimmed bool, err error) {
	if !it.SeekGE(key1(chunkRows, p.uid)) || !p.owns(it.Key()) {
		return false, it.Error()
	}
	first, err := decodeChunkRow(it.Key(), it.Value())
	if err != nil {
		return false, err
	}
	it.SeekLT(key1(chunkRows, p.uid+1))
	last, err := decodeChunkRow(it.Key(), it.Value())
	if err != nil {
		return false, err
	}
	trimmed = first.base < p.start
	end := last.before + last.bytes
	p.next = max(p.next, last.base+last.count)
	p.plan = partitionPlan{start: p.start, next: p.next, time: max(p.plan.time, last.time), before: max(p.plan.before, end)}
	p.cut = p.plan.before
	if it.SeekGE(key2(chunkRows, p.uid, uint64(p.start))) && p.owns(it.Key()) {
		kept, err := decodeChunkRow(it.Key(), it.Value())
		if err != nil {
			return false, err
		}
		p.cut = kept.before
	}
	p.bytes = p.plan.before - p.cut
	return trimmed, nil
}

func (p *partition) owns(key []byte) bool {
	return len(key) == 17 && binary.BigEndian.Uint64(key[1:]) == p.uid
}
