package broker

import (
	"cmp"
	"slices"
	"strings"
)

// Depth is what a group has still to settle of a queue.
type Depth struct {
	Pending           int64 // records
	PartitionsPending int64 // that have any
	Conflates         bool
	Partitions        []PartitionDepth // by name
}

// PartitionDepth is the same of one partition.
type PartitionDepth struct {
	Name    string
	Pending int64
}

// Depth counts what a group has still to settle; without a group, per partition
// what the group furthest behind has, or all where there is none. False when the
// queue does not exist.
func (b *Broker) Depth(t Tenant, name, of string) (Depth, bool) {
	q := b.catalog.find(t, name)
	if q == nil {
		return Depth{}, false
	}
	groups := b.machine.deliveries.of(q)
	if of != "" {
		groups = slices.DeleteFunc(groups, func(g *group) bool { return g.name != of })
	}
	var d Depth
	for _, p := range q.partitions() {
		at := PartitionDepth{Name: p.name, Pending: -1}
		for _, g := range groups {
			at.Pending = max(at.Pending, b.pendingOf(g, p))
		}
		if at.Pending < 0 {
			start, next := p.bounds()
			at.Pending = next - start
		}
		d.Pending += at.Pending
		if at.Pending > 0 {
			d.PartitionsPending++
		}
		d.Partitions = append(d.Partitions, at)
	}
	d.Conflates = of != "" && len(groups) > 0 && groups[0].sub.conflates
	slices.SortFunc(d.Partitions, func(a, b PartitionDepth) int { return strings.Compare(a.Name, b.Name) })
	return d, true
}

// pendingOf counts what a group has not settled of a partition. Where it has no
// place yet, that is all it would begin with.
func (b *Broker) pendingOf(g *group, p *partition) int64 {
	start, next := p.bounds()
	ds := b.machine.deliveries
	ds.mu.Lock()
	s, since := g.seats[p.uid], g.sub.since
	if s != nil && s.placed {
		c := s.cursor
		n := int64(0)
		for _, gap := range c.gaps(next) {
			n += max(gap.to-max(gap.from, start), 0)
		}
		ds.mu.Unlock()
		return n
	}
	ds.mu.Unlock()
	if since > 0 {
		if at, err := b.beginning(p, since); err == nil {
			start = at
		}
	}
	return next - start
}

// nativeGroups lists the native groups of a tenant, by group and queue.
func (b *Broker) nativeGroups(t Tenant) []GroupRow {
	var list []GroupRow
	for _, q := range b.catalog.list(t) {
		for _, g := range b.machine.deliveries.of(q) {
			list = append(list, b.groupRow(q, g))
		}
	}
	return list
}

func (b *Broker) groupRow(q *queue, g *group) GroupRow {
	row := GroupRow{Group: g.name, Queue: q.name, Native: true}
	ds := b.machine.deliveries
	ds.mu.Lock()
	row.Partitions, row.Conflates = len(g.seats), g.sub.conflates
	row.CreatedAt, row.Since = instant(g.sub.created), instant(g.sub.since)
	ds.mu.Unlock()
	for _, p := range q.partitions() {
		if n := b.pendingOf(g, p); n > 0 {
			row.TotalLag += n
			row.PartitionsWithLag++
		}
	}
	return row
}

func compareGroups(a, b GroupRow) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Queue, b.Queue))
}
