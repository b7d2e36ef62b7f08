package broker

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// cursor is what a group has settled of one partition: everything below next,
// and stretches above it, for records may be acknowledged in any order.
type cursor struct {
	next    int64
	settled []stretch // above next, ascending, never touching each other
	fails   []failure // of records that are not settled, by offset
}

// stretch is a run of offsets; to is exclusive.
type stretch struct{ from, to int64 }

// failure counts how often a record was failed.
type failure struct{ offset, count int64 }

// settle adds a run of offsets.
func (c *cursor) settle(from, to int64) {
	from = max(from, c.next)
	if from >= to {
		return
	}
	i, _ := slices.BinarySearchFunc(c.settled, from, func(s stretch, at int64) int { return cmp.Compare(s.to, at) })
	j := i
	for ; j < len(c.settled) && c.settled[j].from <= to; j++ {
		from, to = min(from, c.settled[j].from), max(to, c.settled[j].to)
	}
	c.settled = slices.Replace(c.settled, i, j, stretch{from, to})
	if c.settled[0].from <= c.next {
		c.next = c.settled[0].to
		c.settled = slices.Delete(c.settled, 0, 1)
	}
	c.fails = slices.DeleteFunc(c.fails, func(f failure) bool {
		return f.offset < c.next || f.offset >= from && f.offset < to
	})
}

// raise is settle for everything below a partition's start.
func (c *cursor) raise(start int64) {
	if start > c.next {
		c.settle(c.next, start)
	}
}

// has says whether an offset is settled.
func (c *cursor) has(offset int64) bool {
	if offset < c.next {
		return true
	}
	for _, s := range c.settled {
		if offset < s.from {
			return false
		}
		if offset < s.to {
			return true
		}
	}
	return false
}

// gaps are the runs below end that are not settled.
func (c *cursor) gaps(end int64) []stretch {
	var list []stretch
	from := c.next
	for _, s := range c.settled {
		if s.from >= end {
			break
		}
		list = append(list, stretch{from, s.from})
		from = s.to
	}
	if from < end {
		list = append(list, stretch{from, end})
	}
	return list
}

// fail counts a failure of a record, and says how many there were.
func (c *cursor) fail(offset int64) int64 {
	i, found := slices.BinarySearchFunc(c.fails, offset, func(f failure, at int64) int { return cmp.Compare(f.offset, at) })
	if !found {
		c.fails = slices.Insert(c.fails, i, failure{offset: offset})
	}
	c.fails[i].count++
	return c.fails[i].count
}

func (c *cursor) failed(offset int64) int64 {
	i, found := slices.BinarySearchFunc(c.fails, offset, func(f failure, at int64) int { return cmp.Compare(f.offset, at) })
	if !found {
		return 0
	}
	return c.fails[i].count
}

func appendCursor(b []byte, c *cursor) []byte {
	b = appendInt(b, c.next)
	b = binary.AppendUvarint(b, uint64(len(c.settled)))
	at := c.next
	for _, s := range c.settled {
		b = appendInt(appendInt(b, s.from-at), s.to-s.from)
		at = s.to
	}
	b = binary.AppendUvarint(b, uint64(len(c.fails)))
	at = c.next
	for _, f := range c.fails {
		b = appendInt(appendInt(b, f.offset-at), f.count)
		at = f.offset
	}
	return b
}

func decodeCursor(d *decoder) cursor {
	c := cursor{next: d.int()}
	at := c.next
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		from := at + d.int()
		at = from + d.int()
		c.settled = append(c.settled, stretch{from, at})
	}
	at = c.next
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		at += d.int()
		c.fails = append(c.fails, failure{at, d.int()})
	}
	return c
}
