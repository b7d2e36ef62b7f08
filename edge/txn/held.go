package txn

import (
	"container/list"
	"context"
	"slices"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// enter finds or makes the entry of an id and takes its turn.
func (c *Coordinator) enter(ctx context.Context, s tenancy.Scope, id string) (*entry, Outcome) {
	key := tenancy.KeyOf(s, id)
	patience := time.NewTimer(c.cfg.Patience)
	defer patience.Stop()
	for {
		e, ok := c.find(s, key)
		if !ok {
			return nil, Busy
		}
		select {
		case <-e.turn:
		case <-patience.C:
			return nil, Busy
		case <-ctx.Done():
			return nil, Busy
		}
		if c.begin(e) {
			return e, OK
		}
		e.turn <- struct{}{} // it ended while this request waited: there may be a new one
	}
}

// find returns the entry of a key, made where there is none and room for one.
func (c *Coordinator) find(s tenancy.Scope, key Key) (*entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		return e, true
	}
	for !c.cfg.Open.Take(s, 1) {
		if !c.evict(key.Tenant()) {
			return nil, false
		}
	}
	e := &entry{key: key, turn: make(chan struct{}, 1), stage: newStage(), scope: s}
	e.turn <- struct{}{}
	c.entries[key] = e
	return e, true
}

// evict ends the tenant's longest idle id: its row says all there is to know.
// Open transactions are never ended for room. c.mu is held.
func (c *Coordinator) evict(tenant tenancy.ID) bool {
	l := c.idle[tenant]
	if l == nil {
		return false
	}
	for p := l.Front(); p != nil; p = p.Next() {
		if e := p.Value.(*entry); !e.busy {
			c.end(e)
			return true
		}
	}
	return false
}

// begin says that somebody is at the entry; false: it has ended.
func (c *Coordinator) begin(e *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.busy = !e.dead
	return e.busy
}

// leave gives the turn back. An id without a transaction may be ended for room
// from then on; a request has made it the last in line.
func (c *Coordinator) leave(e *entry, request bool) {
	c.mu.Lock()
	e.busy = false
	if !e.dead {
		c.list(e, request)
		c.register(e)
	}
	c.mu.Unlock()
	e.turn <- struct{}{}
}

// list puts an entry into the line of idle ones, or takes it out; c.mu is held.
func (c *Coordinator) list(e *entry, last bool) {
	if !e.stage.restful() {
		c.unlist(e)
		return
	}
	l := c.idle[e.key.Tenant()]
	switch {
	case l == nil:
		l = list.New()
		c.idle[e.key.Tenant()] = l
		e.place = l.PushBack(e)
	case e.place == nil:
		e.place = l.PushBack(e)
	case last:
		l.MoveToBack(e.place)
	}
}

// register keeps the index of groups true; c.mu is held.
func (c *Coordinator) register(e *entry) {
	now := e.stage.offsetGroups()
	if slices.Equal(now, e.groups) {
		return
	}
	c.unregister(e)
	for _, g := range now {
		key := tenancy.KeyOf(e.scope, g)
		if c.groups[key] == nil {
			c.groups[key] = make(map[*entry]bool)
		}
		c.groups[key][e] = true
	}
	e.groups = now
}

func (c *Coordinator) unregister(e *entry) {
	for _, g := range e.groups {
		key := tenancy.KeyOf(e.scope, g)
		if delete(c.groups[key], e); len(c.groups[key]) == 0 {
			delete(c.groups, key)
		}
	}
	e.groups = nil
}

// offsetGroups are the groups that offsets are staged of.
func (s *Stage) offsetGroups() []string {
	var groups []string
	for i := range s.Groups {
		if s.Groups[i].Staged {
			groups = append(groups, s.Groups[i].ID)
		}
	}
	return groups
}

// restful reports a stage that its row describes in full.
func (s *Stage) restful() bool { return s.Phase == Empty && (len(s.Unsure) == 0 || !s.Known) }

// forget ends an entry that its request is done with.
func (c *Coordinator) forget(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(e)
}

// end takes an entry out and gives back what it holds. c.mu is held, and either
// the turn is the caller's or the entry is idle.
func (c *Coordinator) end(e *entry) {
	if e.dead {
		return
	}
	e.dead = true
	c.unlist(e)
	c.unregister(e)
	delete(c.entries, e.key)
	c.cfg.Open.Give(e.scope, 1)
	c.cfg.Staged.Give(e.scope, e.stage.Held)
	e.session.drop(e)
}

// unlist takes an entry out of the idle ones; c.mu is held.
func (c *Coordinator) unlist(e *entry) {
	if e.place == nil {
		return
	}
	l := c.idle[e.key.Tenant()]
	l.Remove(e.place)
	e.place = nil
	if l.Len() == 0 {
		delete(c.idle, e.key.Tenant())
	}
}
