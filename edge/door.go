package edge

import (
	"container/list"
	"sync"
)

// door knows every connection, and in which order those came that have not
// logged in. These may be a quarter of all connections; beyond that, and when
// the house is full, the oldest makes room, so that a flood of silent
// connections costs itself (B4) and never takes a tenant's place.
type door struct {
	places      int
	unprovedMax int

	mu       sync.Mutex // guards the fields below
	conns    map[*conn]struct{}
	unproved *list.List // of *conn, oldest first
	members  int        // connections that have logged in
}

func newDoor(places int) *door {
	return &door{
		places: places, unprovedMax: max(places/4, 1),
		conns: make(map[*conn]struct{}), unproved: list.New(),
	}
}

// enter gives a connection a place and returns the one that must go for it, if
// any. ok is false when every place is a member's.
func (d *door) enter(c *conn) (oldest *conn, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	full := d.members+d.unproved.Len() >= d.places
	if full || d.unproved.Len() >= d.unprovedMax {
		front := d.unproved.Front()
		if front == nil {
			return nil, false
		}
		oldest = front.Value.(*conn)
		d.unlist(oldest)
	}
	d.conns[c] = struct{}{}
	c.place = d.unproved.PushBack(c)
	return oldest, true
}

// prove makes a connection a member if take, which must not block, finds room
// for it. One that has made room for another has no place any more.
func (d *door) prove(c *conn, take func() bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.place == nil || !take() {
		return false
	}
	d.unlist(c)
	d.members++
	return true
}

// leave forgets a connection.
func (d *door) leave(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unlist(c)
	if c.promoted {
		d.members--
	}
	delete(d.conns, c)
}

func (d *door) unlist(c *conn) {
	if c.place != nil {
		d.unproved.Remove(c.place)
		c.place = nil
	}
}

// count is how many connections there are, those that are just being closed
// included.
func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// counts is how many connections have logged in, and how many have not.
func (d *door) counts() (members, strangers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members, len(d.conns) - d.members
}

// all returns the connections.
func (d *door) all() []*conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	conns := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	return conns
}
