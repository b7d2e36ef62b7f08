package group

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Config is what a Coordinator works with.
type Config struct {
	JoinDelay              time.Duration // wait of an empty group for more members
	MinSession, MaxSession time.Duration // session timeouts a member may ask for
	MaxMembers             int           // of one group; 0: no bound
	MaxBytes               int           // of one group's members: metadata and assignments; 0: no bound

	Groups *tenancy.Ceiling // groups of the process; nil: no bound
	Bytes  *tenancy.Ceiling // bytes of all groups' members; nil: no bound

	// Twins is told of two tenants that run a group of one id while the cell has
	// named no cluster for one of them: they may be one tenant, with its group
	// split in two (B4). nil: nobody is told. It must not block.
	Twins func(a, b tenancy.ID)

	Clock func() time.Time // nil: time.Now
	NewID func() string    // what makes a member id its own; nil: random
}

// Coordinator holds the groups of all tenants. It is safe for concurrent use.
// Close it: groups have timers.
type Coordinator struct {
	cfg      Config
	rules    rules
	wakes    sync.WaitGroup // timers that are set or at work
	counted  [Reasons]atomic.Int64
	clamped  atomic.Int64
	released atomic.Int64

	mu     sync.Mutex // guards the fields below; never held while a group's is taken
	groups map[tenancy.Key[string]]*live
	strays int // groups of tenants without a cluster
	closed bool
}

// New makes a Coordinator without groups.
func New(cfg Config) *Coordinator {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = randomID
	}
	if cfg.Twins == nil {
		cfg.Twins = func(a, b tenancy.ID) {}
	}
	if cfg.MaxMembers <= 0 {
		cfg.MaxMembers = maxInt
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = maxInt
	}
	return &Coordinator{
		cfg: cfg,
		rules: rules{
			joinDelay: cfg.JoinDelay, minSession: cfg.MinSession, maxSession: cfg.MaxSession,
			maxMembers: cfg.MaxMembers, maxBytes: cfg.MaxBytes,
		},
		groups: make(map[tenancy.Key[string]]*live),
	}
}

const maxInt = int(^uint(0) >> 1)

// Close forgets every group, answers who waits (15), and waits for the timers.
func (c *Coordinator) Close() {
	for _, g := range c.all(func(tenancy.Key[string]) bool { return true }, true) {
		g.end(kerr.CoordinatorNotAvailable)
	}
	c.wakes.Wait()
}

// Join is JoinGroup. It waits until the group's window closes, or ctx ends: then
// nobody waits any more, the member's session timer runs, and the answer is 15.
func (c *Coordinator) Join(ctx context.Context, s tenancy.Scope, groupID string, req JoinRequest) JoinAnswer {
	if req.Rebalance > MaxRebalance {
		c.clamped.Add(1)
	}
	newID := ""
	if req.MemberID == "" {
		newID = memberID(req.ClientID, c.cfg.NewID())
	}
	a, ok := c.ask(ctx, s, groupID, Weight(&req)+len(newID), true, func(to uint64) event {
		return joinEvent{to, req, newID}
	})
	if !ok {
		a.code = kerr.CoordinatorNotAvailable
	}
	if a.code != nil {
		a.join = JoinAnswer{Code: a.code, Generation: -1, MemberID: req.MemberID}
	}
	return a.join
}

// Sync is SyncGroup. It waits until the leader has assigned; see Join about ctx.
func (c *Coordinator) Sync(ctx context.Context, s tenancy.Scope, groupID string, req SyncRequest) SyncAnswer {
	weight := 0
	for _, a := range req.Assignments {
		weight += len(a.Data)
	}
	a, ok := c.ask(ctx, s, groupID, weight, false, func(to uint64) event { return syncEvent{to, req} })
	if !ok {
		a.code = kerr.UnknownMemberID
	}
	if a.code != nil {
		a.sync = SyncAnswer{Code: a.code}
	}
	return a.sync
}

// Heartbeat says whether a member is still of this generation.
func (c *Coordinator) Heartbeat(s tenancy.Scope, groupID string, generation int32, memberID, instanceID string) *kerr.Error {
	a, ok := c.ask(context.Background(), s, groupID, 0, false, func(to uint64) event {
		return heartbeatEvent{to, generation, memberID, instanceID}
	})
	if !ok {
		return kerr.UnknownMemberID
	}
	return a.code
}

// Leave lets members go; the codes are in the order of the leavers.
func (c *Coordinator) Leave(s tenancy.Scope, groupID string, leavers []Leaver) []*kerr.Error {
	a, ok := c.ask(context.Background(), s, groupID, 0, false, func(to uint64) event { return leaveEvent{to, leavers} })
	if !ok || a.code != nil {
		return slices.Repeat([]*kerr.Error{kerr.UnknownMemberID}, len(leavers))
	}
	return a.left
}

// CheckCommit says whether a commit may be written (kafka-surface §8.5): nil, or
// the code of every partition in it. A generation below 0 with an empty member
// id is a simple consumer: allowed while the group is unknown or empty. A commit
// that is allowed counts as a sign of life of its member.
func (c *Coordinator) CheckCommit(s tenancy.Scope, groupID string, generation int32, memberID string, instanceID *string) *kerr.Error {
	ev := commitEvent{generation: generation, memberID: memberID}
	if instanceID != nil {
		ev.instanceID = *instanceID
	}
	a, ok := c.ask(context.Background(), s, groupID, 0, false, func(to uint64) event {
		ev.to = to
		return ev
	})
	if !ok {
		return newState(c.rules, c.cfg.Clock()).commit(ev) // as of a group that is empty
	}
	return a.code
}

// Delete forgets an empty group at once; it then describes as Dead. found says
// whether it was there. A group with members is left alone: 68.
func (c *Coordinator) Delete(s tenancy.Scope, groupID string) (found bool, refusal *kerr.Error) {
	a, ok := c.ask(context.Background(), s, groupID, 0, false, func(to uint64) event { return deleteEvent{to} })
	return ok, a.code
}

// Describe shows a live group; false: there is none.
func (c *Coordinator) Describe(s tenancy.Scope, groupID string) (Description, bool) {
	g := c.find(tenancy.KeyOf(s, groupID))
	if g == nil {
		return Description{State: Dead}, false
	}
	var d Description
	ok := g.look(func(st *state) { d = st.describe() })
	return d, ok
}

// Subscribed reports whether a member of a live group of protocol type
// "consumer" is subscribed to a topic. Metadata that cannot be read counts as
// subscribed to everything; unread says that this is why.
func (c *Coordinator) Subscribed(s tenancy.Scope, groupID, topic string) (yes, unread bool) {
	if g := c.find(tenancy.KeyOf(s, groupID)); g != nil {
		g.look(func(st *state) { yes, unread = st.subscribed(topic) })
	}
	return yes, unread
}

// List is the live groups of a tenant, sorted by id.
func (c *Coordinator) List(s tenancy.Scope) []Listing {
	var out []Listing
	for _, g := range c.all(func(k tenancy.Key[string]) bool { return k.Tenant() == s.ID() }, false) {
		g.look(func(st *state) {
			out = append(out, Listing{ID: g.key.Name(), ProtocolType: st.protocolType, State: st.phase})
		})
	}
	slices.SortFunc(out, func(a, b Listing) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Stats counts.
func (c *Coordinator) Stats() Stats {
	var out Stats
	for _, g := range c.all(func(tenancy.Key[string]) bool { return true }, false) {
		g.look(func(st *state) {
			out.Groups[st.phase]++
			out.Members += len(st.members)
		})
	}
	for i := range out.Rebalances {
		out.Rebalances[i] = c.counted[i].Load()
	}
	out.Clamped, out.Released = c.clamped.Load(), c.released.Load()
	return out
}

// Export takes a group out of the coordinator: it is the caller's to hand over.
// Those who wait are answered 15. False: there is no such group.
func (c *Coordinator) Export(s tenancy.Scope, groupID string) (State, bool) {
	g := c.find(tenancy.KeyOf(s, groupID))
	if g == nil {
		return State{}, false
	}
	return g.export()
}

// Import takes over a group that another coordinator has exported. It is refused
// where there is one already (15), or no room (15).
func (c *Coordinator) Import(s tenancy.Scope, groupID string, in State) *kerr.Error {
	g := newLive(c, s, groupID, importState(c.rules, c.cfg.Clock(), in))
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.reserve(g.st.memory()) {
		return kerr.CoordinatorNotAvailable
	}
	if c.enter(g) != g {
		g.free()
		return kerr.CoordinatorNotAvailable
	}
	g.run(tickEvent{})
	return nil
}

// ask brings an event to a group and waits for the answer; false: there is no
// such group, and none was to be made. A group that ends in the same instant is
// looked for once more.
func (c *Coordinator) ask(ctx context.Context, s tenancy.Scope, groupID string, weight int, create bool, ev func(to uint64) event) (answer, bool) {
	key := tenancy.KeyOf(s, groupID)
	for range 2 {
		g := c.find(key)
		if g == nil && create {
			g = c.enter(newLive(c, s, groupID, newState(c.rules, c.cfg.Clock())))
		}
		if g == nil {
			return answer{}, false
		}
		if a, ok := g.ask(ctx, weight, ev); ok {
			return a, true
		}
	}
	return answer{}, false
}

func (c *Coordinator) find(key tenancy.Key[string]) *live {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[key]
}

// enter gives a new group its place and returns it; or the group that has it
// already, or nil where there is no room.
func (c *Coordinator) enter(g *live) *live {
	in, twin := c.place(g)
	if in == g && !twin.IsZero() {
		c.cfg.Twins(g.scope.ID(), twin)
	}
	return in
}

func (c *Coordinator) place(g *live) (in *live, twin tenancy.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.groups[g.key]; other != nil {
		return other, twin
	}
	if c.closed || c.cfg.Groups != nil && !c.cfg.Groups.Take(g.scope, 1) {
		return nil, twin
	}
	c.groups[g.key] = g
	if !g.scope.Resolved() {
		c.strays++
	}
	return g, c.twin(g)
}

// twin finds the tenant that Config.Twins is told of; zero: there is none. It
// looks through all groups, but only while there are tenants without a cluster.
// c.mu is held.
func (c *Coordinator) twin(g *live) (none tenancy.ID) {
	if c.strays == 0 {
		return none
	}
	for key, other := range c.groups {
		if other != g && key.Name() == g.key.Name() && !(g.scope.Resolved() && other.scope.Resolved()) {
			return key.Tenant()
		}
	}
	return none
}

// leave gives a group's place back.
func (c *Coordinator) leave(g *live) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups[g.key] != g {
		return
	}
	delete(c.groups, g.key)
	if !g.scope.Resolved() {
		c.strays--
	}
	if c.cfg.Groups != nil {
		c.cfg.Groups.Give(g.scope, 1)
	}
}

// all are the groups that which names; last says that no more may come.
func (c *Coordinator) all(which func(tenancy.Key[string]) bool, last bool) []*live {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = c.closed || last
	var out []*live
	for key, g := range c.groups {
		if which(key) {
			out = append(out, g)
		}
	}
	return out
}
