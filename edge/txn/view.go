package txn

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// View is what others may know of a transactional id.
type View struct {
	ID         string
	Producer   Producer
	Phase      Phase
	Last       RowState // how the last transaction ended
	Seq        int64
	Timeout    time.Duration
	Started    time.Time
	Partitions []PartitionView // of the open transaction
}

// PartitionView is a partition of an open transaction.
type PartitionView struct {
	TopicPartition
	LastSequence int32 // −1: no records
}

func (s *Stage) view(id string) View {
	v := View{
		ID: id, Producer: s.Producer, Phase: s.Phase, Last: s.Last, Seq: s.Seq,
		Timeout: s.Timeout, Started: s.Started,
	}
	if s.Phase != Open && s.Phase != Committing {
		return v
	}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		if p.Added != s.Seq {
			continue
		}
		seq := int32(-1)
		if p.Seqs.Known && p.Seqs.Txn == s.Seq {
			seq = (p.Seqs.Next - 1) & (1<<31 - 1)
		}
		v.Partitions = append(v.Partitions, PartitionView{TopicPartition{p.Topic, p.Index}, seq})
	}
	return v
}

// List gives the tenant's ids that are held here, in their order.
func (c *Coordinator) List(s tenancy.Scope) []View {
	var views []View
	for _, e := range c.all() {
		if e.key.Tenant() != s.ID() {
			continue
		}
		e.mu.Lock()
		if e.stage.Producer.Named() {
			views = append(views, e.stage.view(e.key.Name()))
		}
		e.mu.Unlock()
	}
	slices.SortFunc(views, func(a, b View) int { return cmp.Compare(a.ID, b.ID) })
	return views
}

// Find gives an id that is held here; else its producer is Nobody.
func (c *Coordinator) Find(s tenancy.Scope, id string) View {
	c.mu.Lock()
	e := c.entries[tenancy.KeyOf(s, id)]
	c.mu.Unlock()
	if e == nil {
		return View{Producer: Nobody()}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stage.view(id)
}

// FindRow gives an id as its row has it, without taking it over. False: there is
// no such id.
func (c *Coordinator) FindRow(ctx context.Context, s tenancy.Scope, id string) (View, bool, error) {
	value, version, err := c.cfg.Store.Read(ctx, s, id)
	if err != nil || version == 0 {
		return View{}, false, err
	}
	row, err := ParseRow(value)
	if err != nil {
		return View{}, false, nil
	}
	v := View{ID: id, Producer: row.producer(), Last: row.State, Seq: row.Seq, Timeout: row.timeout()}
	if row.State == RowOpen || row.Lost {
		v.Phase = Lost
	}
	return v, true, nil
}

// Pending reports which partitions of a group have offsets staged in an open
// transaction: what is committed for them may change at any moment.
func (c *Coordinator) Pending(s tenancy.Scope, group string) map[TopicPartition]bool {
	c.mu.Lock()
	entries := make([]*entry, 0, len(c.groups[tenancy.KeyOf(s, group)]))
	for e := range c.groups[tenancy.KeyOf(s, group)] {
		entries = append(entries, e)
	}
	c.mu.Unlock()
	if len(entries) == 0 {
		return nil
	}
	pending := make(map[TopicPartition]bool)
	for _, e := range entries {
		e.mu.Lock()
		for i := range e.stage.Offsets {
			if o := &e.stage.Offsets[i]; o.Group == group {
				pending[TopicPartition{o.Topic, o.Partition}] = true
			}
		}
		e.mu.Unlock()
	}
	return pending
}

// Held is how many ids of all tenants are held.
func (c *Coordinator) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// Export takes a stage out, whole, to go on elsewhere. It waits for the request
// that is at it. False: the id is not held.
func (c *Coordinator) Export(ctx context.Context, s tenancy.Scope, id string) (Stage, bool) {
	c.mu.Lock()
	e := c.entries[tenancy.KeyOf(s, id)]
	c.mu.Unlock()
	if e == nil {
		return Stage{}, false
	}
	select {
	case <-e.turn:
	case <-ctx.Done():
		return Stage{}, false
	}
	if !c.begin(e) {
		e.turn <- struct{}{}
		return Stage{}, false
	}
	stage := *e.stage
	c.forget(e)
	c.leave(e, false)
	return stage, stage.Known
}

// Import goes on with a stage that another process has given away. False: there
// is no room, or the id is held here already.
func (c *Coordinator) Import(s tenancy.Scope, id string, stage Stage) bool {
	stage.Held = stage.size()
	if !c.cfg.Staged.Take(s, stage.Held) {
		return false
	}
	key := tenancy.KeyOf(s, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] != nil || !c.cfg.Open.Take(s, 1) {
		c.cfg.Staged.Give(s, stage.Held)
		return false
	}
	e := &entry{key: key, turn: make(chan struct{}, 1), stage: &stage, scope: s}
	e.turn <- struct{}{}
	c.entries[key] = e
	c.register(e)
	c.list(e, true)
	return true
}

// Has reports whether a transaction that is open here has a partition.
func (c *Coordinator) Has(s tenancy.Scope, id string, tp TopicPartition) bool {
	c.mu.Lock()
	e := c.entries[tenancy.KeyOf(s, id)]
	c.mu.Unlock()
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stage.Phase == Open && e.stage.added(tp.Topic, tp.Index) != nil
}
