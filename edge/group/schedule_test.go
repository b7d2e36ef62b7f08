package group

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Random schedules: up to fifty clients, dynamic and static, that come, leave,
// restart, crash, are slow, and go away while they are parked, on a group that
// moves between coordinators all the time. No generation gives a partition to
// two members, nobody waits for longer than the timeouts allow, the group never
// sleeps on what is past, and once the clients behave it is soon stable with all
// of them.
func TestSchedules(t *testing.T) {
	schedules := uint64(8)
	if os.Getenv("QE_FULL") != "" {
		schedules = 4000
	}
	for seed := range schedules {
		w := newWorld(seed)
		w.run(10 * time.Minute)
		w.calm()
		if w.failed != "" {
			t.Fatalf("seed %d, %v: %s", seed, w.now.Sub(w.start), w.failed)
		}
	}
}

const (
	worldPartitions = 97
	worldSession    = 10 * time.Second
	worldRebalance  = 30 * time.Second
	worldDelay      = 3 * time.Second
	worldHeartbeat  = 3 * time.Second
)

type world struct {
	rng     *rand.Rand
	start   time.Time
	now     time.Time
	st      *state
	clients []*simClient
	to      uint64
	asked   map[uint64]*simRequest
	owners  map[string]string // generation/partition -> who
	begun   int               // how often the group began anew
	ids     int
	calmed  bool
	failed  string
}

type simRequest struct {
	c    *simClient
	kind waitKind // noWait: answered at once
	at   time.Time
}

// simClient is a client of the library's kind: it joins, syncs, heartbeats, and
// joins again when it is told.
type simClient struct {
	name, instance string
	id             string
	generation     int32
	roster         []Candidate
	at             time.Time // its next deed; zero: it waits for an answer
	deed           func()
	parked         *simRequest
	stable         bool
	dead           bool
	assigned       string
}

func newWorld(seed uint64) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), start: time.Unix(1_800_000_000, 0),
		asked: map[uint64]*simRequest{}, owners: map[string]string{},
	}
	w.now = w.start
	w.st = newState(worldRules(), w.now)
	return w
}

func worldRules() rules {
	return rules{joinDelay: worldDelay, minSession: time.Second, maxSession: time.Minute, maxMembers: 100, maxBytes: 1 << 20}
}

func (w *world) fail(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf(format, args...)
	}
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

// run lets chaos rule for so long.
func (w *world) run(d time.Duration) {
	until := w.now.Add(d)
	chaos := w.now
	for w.failed == "" && w.now.Before(until) {
		w.advance(chaos)
		if !w.now.Before(chaos) {
			w.disturb()
			chaos = w.now.Add(w.upTo(4 * time.Second))
		}
	}
}

// calm ends the chaos: everybody who lives must soon be a member.
func (w *world) calm() {
	w.calmed = true
	until := w.now.Add(5 * time.Minute)
	for w.failed == "" && w.now.Before(until) {
		w.advance(until)
	}
	if w.failed != "" {
		return
	}
	var got []string
	for _, c := range w.living() {
		if !c.stable || c.generation != w.st.generation {
			w.fail("%s is no member of the stable group: generation %d of %d, %s", c.name, c.generation, w.st.generation, w.st.phase)
		}
		got = append(got, strings.Fields(c.assigned)...)
	}
	if len(w.living()) > 0 && len(got) != worldPartitions {
		w.fail("%d of %d partitions are assigned", len(got), worldPartitions)
	}
	if len(w.st.members) != len(w.living()) {
		w.fail("%d members, %d clients", len(w.st.members), len(w.living()))
	}
}

// advance goes to what comes next, at most to limit.
func (w *world) advance(limit time.Time) {
	next := limit
	if at := w.st.next(); !at.IsZero() && at.Before(next) {
		next = at
	}
	var first *simClient
	for _, c := range w.clients {
		if !c.at.IsZero() && c.at.Before(next) {
			next, first = c.at, c
		}
	}
	if next.After(w.now) {
		w.now = next
	}
	if first != nil {
		first.at = time.Time{}
		first.deed()
		return
	}
	w.step(tickEvent{})
}

// step is one step of the group, with its answers handed out.
func (w *world) step(ev event) {
	generation := w.st.generation
	effects := w.st.step(w.now, ev)
	if w.st.generation < generation && !slices.Contains(effects, effect(retire{})) {
		w.fail("the generation fell from %d to %d", generation, w.st.generation)
	}
	for _, e := range effects {
		switch e := e.(type) {
		case reply:
			w.deliver(e)
		case retire:
			w.st = newState(worldRules(), w.now)
			w.begun++
		}
	}
	if next := w.st.next(); !next.IsZero() && !next.After(w.now) && w.st.phase != Empty {
		w.fail("the group sleeps until %v ago (%s)", w.now.Sub(next), w.st.phase)
	}
	for to, r := range w.asked {
		if r.kind != noWait && w.now.Sub(r.at) > worldRebalance+worldDelay {
			w.fail("request %d of %s waits for %v (%s)", to, r.c.name, w.now.Sub(r.at), w.st.phase)
		}
	}
}

func (w *world) ask(c *simClient, kind waitKind, ev func(to uint64) event) {
	w.to++
	r := &simRequest{c: c, kind: kind, at: w.now}
	w.asked[w.to] = r
	c.at, c.parked = time.Time{}, r
	w.step(ev(w.to))
}

func (w *world) deliver(e reply) {
	r := w.asked[e.to]
	if r == nil {
		return // of a request that was parked before a move, or of a client that left
	}
	delete(w.asked, e.to)
	if r.c.dead || r.c.parked != r {
		return
	}
	r.c.parked = nil
	switch a := e.with; {
	case r.kind == joinWait:
		w.joined(r.c, a.join)
	case r.kind == syncWait:
		w.synced(r.c, a.sync)
	case a.left == nil:
		w.beaten(r.c, a.code)
	}
}

// later gives a client its next deed.
func (w *world) later(c *simClient, in time.Duration, deed func()) {
	c.at, c.deed = w.now.Add(in), deed
}

// think is how long a client takes before it answers a rebalance: mostly not
// long, sometimes for longer than the group will wait.
func (w *world) think() time.Duration {
	if !w.calmed && w.rng.IntN(10) == 0 {
		return w.upTo(40 * time.Second)
	}
	return w.upTo(500*time.Millisecond) + time.Millisecond
}

func (w *world) join(c *simClient) {
	c.stable, c.assigned = false, ""
	req := JoinRequest{
		MemberID: c.id, InstanceID: c.instance, ClientID: c.name, Session: worldSession, Rebalance: worldRebalance,
		ProtocolType: consumerType, TellsID: true, Skips: w.rng.IntN(2) == 0,
		Protocols: []Protocol{{"range", subscription("t")}, {"rr", subscription("t")}},
	}
	w.ids++
	w.ask(c, joinWait, func(to uint64) event { return joinEvent{to, req, fmt.Sprintf("%s-%d", c.name, w.ids)} })
}

func (w *world) again(c *simClient) { w.later(c, w.think(), func() { w.join(c) }) }

// refused is what a client does on a code.
func (w *world) refused(c *simClient, code *kerr.Error) {
	switch code {
	case kerr.FencedInstanceID:
		c.dead = true // somebody else goes by its instance
		return
	case kerr.UnknownMemberID:
		c.id = ""
	case kerr.RebalanceInProgress, kerr.IllegalGeneration:
	default:
		w.fail("%s is answered %v", c.name, code)
	}
	w.again(c)
}

func (w *world) joined(c *simClient, a JoinAnswer) {
	if a.Code == kerr.MemberIDRequired {
		c.id = a.MemberID
		w.again(c)
		return
	}
	if a.Code != nil {
		w.refused(c, a.Code)
		return
	}
	c.id, c.generation, c.roster = a.MemberID, a.Generation, nil
	if a.Leader == a.MemberID && !a.SkipAssignment {
		c.roster = a.Members
		if !slices.ContainsFunc(a.Members, func(m Candidate) bool { return m.ID == a.MemberID }) {
			w.fail("%s leads a generation it is not in", c.name)
		}
	}
	w.later(c, w.think(), func() { w.sync(c) })
}

func (w *world) sync(c *simClient) {
	req := SyncRequest{Generation: c.generation, MemberID: c.id, InstanceID: c.instance}
	shares := make([][]string, len(c.roster))
	for p := range worldPartitions {
		if len(c.roster) > 0 {
			i := p % len(c.roster)
			shares[i] = append(shares[i], fmt.Sprint(p))
		}
	}
	for i, m := range c.roster {
		req.Assignments = append(req.Assignments, Assignment{m.ID, []byte(strings.Join(shares[i], " "))})
	}
	w.ask(c, syncWait, func(to uint64) event { return syncEvent{to, req} })
}

func (w *world) synced(c *simClient, a SyncAnswer) {
	if a.Code != nil {
		w.refused(c, a.Code)
		return
	}
	c.stable, c.assigned = true, string(a.Assignment)
	who := c.id
	if c.instance != "" {
		who = c.instance // its next holder has what it had
	}
	for _, p := range strings.Fields(c.assigned) {
		place := fmt.Sprintf("%d/%d/%s", w.begun, c.generation, p)
		if owner, taken := w.owners[place]; taken && owner != who {
			w.fail("partition %s of generation %d is %s's and %s's", p, c.generation, owner, who)
		}
		w.owners[place] = who
	}
	w.later(c, worldHeartbeat, func() { w.beat(c) })
}

func (w *world) beat(c *simClient) {
	w.ask(c, noWait, func(to uint64) event {
		if w.rng.IntN(4) == 0 {
			return commitEvent{to, c.generation, c.id, c.instance}
		}
		return heartbeatEvent{to, c.generation, c.id, c.instance}
	})
}

func (w *world) beaten(c *simClient, code *kerr.Error) {
	if code != nil {
		w.refused(c, code)
		return
	}
	w.later(c, worldHeartbeat, func() { w.beat(c) })
}

func (w *world) living() []*simClient {
	return slices.DeleteFunc(slices.Clone(w.clients), func(c *simClient) bool { return c.dead })
}

// disturb is one stroke of fate.
func (w *world) disturb() {
	alive := w.living()
	if len(alive) == 0 || len(alive) < 50 && w.rng.IntN(3) == 0 {
		w.newClient("")
		return
	}
	c := alive[w.rng.IntN(len(alive))]
	switch w.rng.IntN(6) {
	case 0:
		w.newClient(fmt.Sprint("i", w.rng.IntN(10))) // may take an instance that has a holder
	case 1:
		w.crash(c)
	case 2:
		w.crash(c)
		if c.instance != "" {
			w.newClient(c.instance) // a restart
		}
	case 3:
		w.crash(c)
		w.to++
		w.step(leaveEvent{w.to, []Leaver{{c.id, c.instance}}})
	case 4:
		w.goAway(c)
	default:
		w.move()
	}
}

func (w *world) newClient(instance string) {
	c := &simClient{name: fmt.Sprint("c", len(w.clients)), instance: instance}
	w.clients = append(w.clients, c)
	w.again(c)
}

// crash ends a client; half of the time its connection is known to be gone.
func (w *world) crash(c *simClient) {
	c.dead, c.at = true, time.Time{}
	if c.parked != nil && w.rng.IntN(2) == 0 {
		w.forget(c.parked)
	}
}

// goAway has a client give up a parked request, and come again.
func (w *world) goAway(c *simClient) {
	if c.parked == nil || c.parked.kind == noWait {
		return
	}
	w.forget(c.parked)
	c.parked = nil
	w.again(c)
}

// forget drops a request, and the group learns of it.
func (w *world) forget(r *simRequest) {
	for to, other := range w.asked {
		if other == r {
			delete(w.asked, to)
			w.step(goneEvent{to})
			return
		}
	}
}

// move takes the group to another coordinator. Its parked requests are sent
// again there, or their clients give up.
func (w *world) move() {
	value := w.st.export(w.now)
	moved := importState(worldRules(), w.now, value)
	if again := moved.export(w.now); !reflect.DeepEqual(again, value) {
		w.fail("a group does not survive a move:\n%+v\n%+v", value, again)
	}
	w.st = moved
	parked := w.asked
	w.asked = map[uint64]*simRequest{}
	for _, to := range slices.Sorted(keysOf(parked)) {
		r := parked[to]
		if r.c.dead || r.c.parked != r {
			continue
		}
		r.c.parked = nil
		switch {
		case r.c.id == "" || w.rng.IntN(5) == 0:
			w.again(r.c)
		case r.kind == joinWait:
			w.later(r.c, w.upTo(time.Second), func() { w.reattach(r.c) })
		default:
			w.later(r.c, w.upTo(time.Second), func() { w.sync(r.c) })
		}
	}
	w.step(tickEvent{})
}

func keysOf(m map[uint64]*simRequest) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (w *world) reattach(c *simClient) {
	req := JoinRequest{MemberID: c.id, InstanceID: c.instance, Reattach: true}
	w.ask(c, joinWait, func(to uint64) event { return joinEvent{to: to, req: req} })
}
