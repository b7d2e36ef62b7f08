package edge

import (
	"math/rand/v2"
	"sync"
	"testing"
)

func yes() bool { return true }

// mustEnter lets a connection in and tells who must go for it.
func mustEnter(t *testing.T, d *door, c *conn) *conn {
	t.Helper()
	oldest, ok := d.enter(c)
	if !ok {
		t.Fatal("the door is shut")
	}
	return oldest
}

// mustProve makes a connection a member, as promote does.
func mustProve(t *testing.T, d *door, c *conn) {
	t.Helper()
	if !d.prove(c, yes) {
		t.Fatal("not proved")
	}
	c.promoted = true
}

// Beyond a quarter of the places the oldest stranger goes, and never a member.
func TestDoorOldestStrangerGoes(t *testing.T) {
	d := newDoor(12)
	var cs [8]conn
	for i := range 3 {
		if oldest := mustEnter(t, d, &cs[i]); oldest != nil {
			t.Errorf("somebody went for connection %d", i)
		}
	}
	mustProve(t, d, &cs[0])
	if oldest := mustEnter(t, d, &cs[3]); oldest != nil {
		t.Error("somebody went although a member makes no stranger")
	}
	if oldest := mustEnter(t, d, &cs[4]); oldest != &cs[1] {
		t.Error("not the oldest stranger went")
	}
	// The one that went has no place: its login comes too late.
	if d.prove(&cs[1], func() bool { t.Error("room was taken for it"); return true }) {
		t.Error("a connection that made room was proved")
	}
	d.leave(&cs[2])
	if oldest := mustEnter(t, d, &cs[5]); oldest != nil {
		t.Error("a place that was left is not free")
	}
	if oldest := mustEnter(t, d, &cs[6]); oldest != &cs[3] {
		t.Error("not the oldest stranger went")
	}
	d.leave(&cs[1])
	d.leave(&cs[1])
	if n := d.count(); n != 5 {
		t.Errorf("%d connections", n)
	}
}

// One for whom there is no room stays what it was.
func TestDoorProveWithoutRoom(t *testing.T) {
	d := newDoor(8)
	var a, b, c conn
	mustEnter(t, d, &a)
	if d.prove(&a, func() bool { return false }) {
		t.Error("proved without room")
	}
	mustEnter(t, d, &b)
	if oldest := mustEnter(t, d, &c); oldest != &a {
		t.Error("one without room is no stranger any more")
	}
}

// In a full house strangers make room for each other, and a house full of
// members is shut.
func TestDoorFullHouse(t *testing.T) {
	d := newDoor(4)
	cs := make([]conn, 6)
	for i := range 3 {
		mustEnter(t, d, &cs[i])
		mustProve(t, d, &cs[i])
	}
	mustEnter(t, d, &cs[3])
	if oldest := mustEnter(t, d, &cs[4]); oldest != &cs[3] {
		t.Error("the stranger stayed in a full house")
	}
	mustProve(t, d, &cs[4])
	if _, ok := d.enter(&cs[5]); ok {
		t.Error("a fifth in a house of four")
	}
	d.leave(&cs[3])
	if _, ok := d.enter(&cs[5]); ok {
		t.Error("the end of one that had made room gave a second place")
	}
	d.leave(&cs[0])
	if oldest := mustEnter(t, d, &cs[5]); oldest != nil {
		t.Error("somebody went for a free place")
	}
	if got := len(d.all()); got != 4 {
		t.Errorf("%d connections", got)
	}
}

// Logins, ends and displacements at once: places are neither lost nor made.
func TestDoorUnderContention(t *testing.T) {
	const places = 20
	d := newDoor(places)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			for range 500 {
				c := new(conn)
				if _, ok := d.enter(c); !ok {
					continue
				}
				if r.IntN(3) > 0 {
					c.promoted = d.prove(c, yes)
				}
				d.mu.Lock()
				if n := d.members + d.unproved.Len(); n > places || d.unproved.Len() > places/4 {
					t.Errorf("%d places taken, %d by strangers", n, d.unproved.Len())
				}
				d.mu.Unlock()
				d.leave(c)
			}
		})
	}
	wg.Wait()
	if d.count() != 0 || d.members != 0 || d.unproved.Len() != 0 {
		t.Errorf("left inside: %d, %d members, %d strangers", d.count(), d.members, d.unproved.Len())
	}
}
