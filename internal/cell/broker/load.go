package broker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// Load implements store.Machine: it makes the catalog from the index's rows.
func (m *machine) Load(s *store.Store) error {
	v, err := s.Get([]byte{uidRow})
	if err != nil {
		return err
	}
	if v != nil {
		d := decoder{b: v}
		m.nextUID = d.uint()
		m.kept = m.nextUID
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
	return eachRow(s, purgeRows, func(key, _ []byte) error {
		m.purge = append(m.purge, binary.BigEndian.Uint64(key[1:]))
		return nil
	})
}

func eachRow(s *store.Store, kind byte, visit func(key, value []byte) error) error {
	it, err := s.Rows([]byte{kind}, []byte{kind + 1})
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		err = visit(it.Key(), it.Value())
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return err
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
	p.plan = partitionPlan{next: f.next, time: f.time, before: f.before}
	m.addPartition(p)
	q.publish(p)
	return nil
}

// loadEnds reads the first and the last chunk of every partition: they tell
// its bounds and its size.
func (m *machine) loadEnds(s *store.Store) error {
	it, err := s.Rows([]byte{chunkRows}, []byte{chunkRows + 1})
	if err != nil {
		return err
	}
	for _, p := range m.parts {
		if err = p.loadEnds(it.SeekGE, it.SeekLT, it.Key, it.Value); err != nil {
			break
		}
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return err
}

func (p *partition) loadEnds(seekGE, seekLT func([]byte) bool, key, value func() []byte) error {
	if !seekGE(key1(chunkRows, p.uid)) || !p.owns(key()) {
		return nil
	}
	first, err := decodeChunkRow(key(), value())
	if err != nil {
		return err
	}
	seekLT(key1(chunkRows, p.uid+1))
	last, err := decodeChunkRow(key(), value())
	if err != nil {
		return err
	}
	p.start = max(p.start, first.base)
	p.next = max(p.next, last.base+last.count)
	p.bytes = last.before + last.bytes - first.before
	p.plan = partitionPlan{next: p.next, time: max(p.plan.time, last.time), before: last.before + last.bytes}
	return nil
}

func (p *partition) owns(key []byte) bool {
	return len(key) == 17 && binary.BigEndian.Uint64(key[1:]) == p.uid
}
