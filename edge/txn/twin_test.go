package txn_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/queen-mq/queen-edge/edge/txn"
)

// twin is the order in the plainest words. Its batches are numbered; they follow
// each other from a start that lies before the wrap. It counts without wrapping
// and keeps everything.
type twin struct {
	window bool // the log knows resends
	seen   bool
	floor  int // number of the first batch seen here
	next   int // number of the batch that is expected
	end    int // batches floor … end−1 are stored
	failed int // number of the failed batch; −1: none
	code   int16
	early  int // the same for those before the floor
	told   int16
	stored map[int]int64 // offsets
	recent []int         // stored, oldest first
	flying []*flying
}

type flying struct {
	number int
	ticket txn.Ticket
	dead   int16
}

func newTwin() *twin { return &twin{failed: -1, early: -1, stored: map[int]int64{}} }

func (m *twin) remembered(n int) bool {
	return slices.Contains(m.recent[max(len(m.recent)-5, 0):], n)
}

func (m *twin) skip(n int) int {
	for m.remembered(n) {
		n++
	}
	return n
}

func (m *twin) alive(n int) bool {
	return slices.ContainsFunc(m.flying, func(f *flying) bool { return f.number == n && f.dead == 0 })
}

// admit says what must become of a batch, and does it.
func (m *twin) admit(n int) (want txn.Verdict) {
	refuse := func(code int16) txn.Verdict { return txn.Verdict{Decision: txn.Refuse, Code: code} }
	switch {
	case !m.seen:
		m.seen, m.floor, m.end = true, n, n
		m.next = n + 1
		return txn.Verdict{}
	case m.remembered(n):
		return txn.Verdict{Decision: txn.Duplicate, Offset: m.stored[n]}
	case m.alive(n):
		return refuse(txn.RequestTimedOut)
	case m.early >= 0 && n > m.early && !m.alive(m.early):
		return refuse(m.told)
	case n == m.next:
		m.next = m.skip(n + 1)
		return txn.Verdict{}
	case n > m.next && m.failed >= 0:
		return refuse(m.code)
	case n > m.next:
		return refuse(txn.OutOfOrderSequence)
	case n < m.floor, m.window:
		return txn.Verdict{}
	case n < m.end:
		return refuse(txn.DuplicateSequence)
	}
	return refuse(txn.OutOfOrderSequence)
}

func (m *twin) store(i int, offset int64) {
	n := m.flying[i].number
	m.flying = slices.Delete(m.flying, i, i+1)
	if !m.remembered(n) {
		m.stored[n] = offset
		m.recent = append(m.recent, n)
	}
	if n == m.early {
		m.early = -1
	}
	if n == m.end {
		m.end = m.skip(n + 1)
		m.next = max(m.next, m.end)
		if m.failed >= 0 && m.failed < m.end {
			m.failed = -1
		}
	}
	m.next = m.skip(m.next)
}

func (m *twin) fail(i int, code int16) {
	f := m.flying[i]
	m.flying = slices.Delete(m.flying, i, i+1)
	if f.dead != 0 || m.floor <= f.number && f.number < m.end {
		return
	}
	for _, behind := range m.flying[i:] {
		behind.dead = code
	}
	if f.number < m.floor && (m.early < 0 || f.number <= m.early) {
		m.early, m.told = f.number, code
	}
	lost := -1
	for _, gone := range append([]*flying{f}, m.flying[i:]...) {
		if gone.number >= m.end && (lost < 0 || gone.number < lost) {
			lost = gone.number
		}
	}
	if lost < 0 {
		return
	}
	m.next = min(m.next, m.skip(lost))
	if m.failed < 0 || lost <= m.failed {
		m.failed, m.code = lost, code
	}
}

func TestOrderAgainstItsTwin(t *testing.T) {
	acme := scope(t, "acme")
	rapid.Check(t, func(t *rapid.T) {
		const batches = 30
		var chain [batches]txn.Batch
		seq := rapid.SampledFrom([]int32{0, 5, math.MaxInt32 - 40, math.MaxInt32, 1 << 30}).Draw(t, "start")
		epoch := rapid.SampledFrom([]int16{0, 9}).Draw(t, "epoch")
		for i := range chain {
			size := rapid.Int32Range(1, 9).Draw(t, "size")
			chain[i] = txn.Batch{Epoch: epoch, First: seq, Last: (seq + size - 1) & math.MaxInt32}
			seq = (seq + size) & math.MaxInt32
		}
		o, m, key := txn.NewOrder(&room{left: 4}), newTwin(), stream(acme, 0)
		m.window = rapid.Bool().Draw(t, "window")
		log := map[int]bool{} // numbers that were reported stored
		pick := func(t *rapid.T) int {
			if len(m.flying) == 0 {
				t.Skip()
			}
			return rapid.IntRange(0, len(m.flying)-1).Draw(t, "outcome of")
		}
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				near := m.next + rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, -1, -1, -2, -5, -9}).Draw(t, "near")
				n := min(max(near, 0), batches-1)
				if !m.seen {
					n = rapid.IntRange(0, 12).Draw(t, "first")
				}
				unready := unstored(m, n)
				want := m.admit(n)
				got := o.Admit(key, chain[n], m.window)
				ticket := got.Ticket
				got.Ticket = txn.Ticket{}
				if got != want {
					t.Fatalf("batch %d: %+v, want %+v", n, got, want)
				}
				pushed := got.Decision == txn.Push
				if pushed {
					m.flying = append(m.flying, &flying{number: n, ticket: ticket})
				}
				// B3, whatever the twin says.
				switch {
				case pushed && unready >= 0:
					t.Fatalf("batch %d is pushed past %d, which is neither stored nor under way", n, unready)
				case got.Decision == txn.Duplicate && !log[n], got.Code == txn.DuplicateSequence && !log[n]:
					t.Fatalf("batch %d is answered as stored", n)
				case got.Code == txn.DuplicateSequence && m.window:
					t.Fatalf("batch %d is answered 46 though the log knows resends", n)
				case got.Code == txn.InvalidEpoch:
					t.Fatal("47 within one epoch")
				}
			},
			"stored": func(t *rapid.T) {
				i := pick(t)
				f, offset := m.flying[i], rapid.Int64Range(-1, 1000).Draw(t, "offset")
				log[f.number] = true
				m.store(i, offset)
				o.Stored(f.ticket, offset)
			},
			"failed": func(t *rapid.T) {
				i := pick(t)
				f, code := m.flying[i], rapid.SampledFrom([]int16{3, 5, 6, 7, 45}).Draw(t, "code")
				m.fail(i, code)
				o.Failed(f.ticket, code)
			},
			"again": func(t *rapid.T) {
				f := &flying{}
				if len(m.flying) > 0 {
					f = m.flying[0]
					m.store(0, 3)
					log[f.number] = true
					o.Stored(f.ticket, 3)
				}
				o.Failed(f.ticket, 7) // it has its outcome
				o.Stored(f.ticket, 4)
			},
			"other streams": func(t *rapid.T) {
				p := rapid.Int32Range(1, 3).Draw(t, "partition")
				if v := o.Admit(stream(acme, p), chain[rapid.IntRange(0, batches-1).Draw(t, "n")], m.window); v.Decision == txn.Push {
					o.Failed(v.Ticket, 7)
				}
			},
			"": func(t *rapid.T) {
				for _, f := range m.flying {
					if got := o.Recheck(f.ticket); got != f.dead {
						t.Fatalf("recheck of batch %d: %d, want %d", f.number, got, f.dead)
					}
				}
			},
		})
	})
}

// unstored is a batch between the first one seen and n that is neither stored
// here nor alive under way, or one before it that is known to have failed; −1:
// there is none.
func unstored(m *twin, n int) int {
	if !m.seen {
		return -1
	}
	if m.early >= 0 && m.early < n && !m.alive(m.early) {
		return m.early
	}
	for i := m.floor; i < n; i++ {
		if _, ok := m.stored[i]; !ok && !m.alive(i) {
			return i
		}
	}
	return -1
}

// Any bytes a client can send: nothing panics, and what is refused is refused
// with the three codes or one that was given.
func TestOrderTakesAnything(t *testing.T) {
	acme := scope(t, "acme")
	rapid.Check(t, func(t *rapid.T) {
		r := &room{left: rapid.IntRange(0, 3).Draw(t, "room")}
		places := r.left
		o := txn.NewOrder(r)
		var tickets []txn.Ticket
		highest := map[int32]int16{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			seq := rapid.OneOf(rapid.Int32Range(0, 12), rapid.Int32Range(math.MaxInt32-6, math.MaxInt32), rapid.Int32Range(0, math.MaxInt32))
			p := rapid.Int32Range(0, 3).Draw(t, "partition")
			b := txn.Batch{Epoch: rapid.Int16Range(0, 3).Draw(t, "epoch"), First: seq.Draw(t, "first"), Last: seq.Draw(t, "last")}
			v := o.Admit(stream(acme, p), b, rapid.Bool().Draw(t, "window"))
			if v.Code == txn.InvalidEpoch && b.Epoch >= highest[p] {
				t.Fatalf("epoch %d is answered 47; the highest was %d", b.Epoch, highest[p])
			}
			if v.Decision == txn.Refuse && v.Code != 7 && (v.Code < 45 || v.Code > 47) {
				t.Fatalf("refused with %d", v.Code)
			}
			if v.Decision == txn.Push {
				highest[p] = max(highest[p], b.Epoch)
			}
			tickets = append(tickets, v.Ticket)
			tk := rapid.SampledFrom(tickets).Draw(t, "ticket")
			o.Recheck(tk)
			if rapid.Bool().Draw(t, "stored") {
				o.Stored(tk, 1)
			} else if rapid.Bool().Draw(t, "failed") {
				o.Failed(tk, 7)
			}
		}
		o.Close()
		if r.left != places {
			t.Fatalf("%d places left of %d", r.left, places)
		}
	})
}
