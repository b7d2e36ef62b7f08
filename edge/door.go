package edge

import (
	"container/list"
	"sync"
)

// door knows every connection, and in which order those came that have not
// logged in. These may be a quarter of all connections; beyond that the oldest
// makes room, so that a flood of silent connections costs itself (B4).
type door struct {
	unprovedMax int

	mu       sync.Mutex // guards the fields below
	conns    map[*conn]struct{}
	unproved *list.List // of *conn, oldest first
	draining bool
}

func newDoor(unprovedMax int) *door {
	return &door{unprovedMax: max(unprovedMax, 1), conns: make(map[*conn]struct{}), unproved: list.New()}
}

// enter adds a connection and returns the one that must go for it, if any.
func (d *door) enter(c *conn) (oldest *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return c
	}
	if d.unproved.Len() >= d.unprovedMax {
		front := d.unproved.Front()
		oldest = front.Value.(*conn)
		d.unproved.Remove(front)
		oldest.place = nil
	}
	d.conns[c] = struct{}{}
	c.place = d.unproved.PushBack(c)
	return oldest
}

// proved takes a connection out of the unproved ones.
func (d *door) proved(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unlist(c)
}

// leave forgets a connection.
func (d *door) leave(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unlist(c)
	delete(d.conns, c)
}

func (d *door) unlist(c *conn) {
	if c.place != nil {
		d.unproved.Remove(c.place)
		c.place = nil
	}
}

// all closes the door and returns the connections inside.
func (d *door) all() []*conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.draining = true
	conns := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	return conns
}
