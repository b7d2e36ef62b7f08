package group_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/goleak"

	"github.com/queen-mq/queen-edge/edge/group"
	"github.com/queen-mq/queen-edge/tenancy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type cell struct{}

func (cell) ListQueuesAs(context.Context, tenancy.Claim) (struct{}, error) { return struct{}{}, nil }

func (cell) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	if strings.HasPrefix(c.Bearer().Reveal(), "?") {
		return tenancy.Identity{}, nil
	}
	return tenancy.Identity{ClusterID: c.Bearer().Reveal()[:1]}, nil
}

// scope is a credential; those that share their first letter are of one tenant.
func scope(t testing.TB, credential string) tenancy.Scope {
	t.Helper()
	v := tenancy.NewVerifier[struct{}](cell{}, tenancy.VerifierConfig{})
	p, err := v.Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret(credential), ""))
	if err != nil {
		t.Fatal(err)
	}
	return p.Scope
}

func newCoordinator(change func(*group.Config)) *group.Coordinator {
	n := 0
	cfg := group.Config{
		JoinDelay: 3 * time.Second, MinSession: time.Second, MaxSession: 5 * time.Minute,
		NewID: func() string { n++; return fmt.Sprint(n) },
	}
	if change != nil {
		change(&cfg)
	}
	return group.New(cfg)
}

func consumer(id string) group.JoinRequest {
	return group.JoinRequest{
		MemberID: id, ClientID: "c", Session: 10 * time.Second, Rebalance: time.Minute,
		ProtocolType: "consumer", Protocols: []group.Protocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 1, 0, 1, 't'}}},
	}
}

// waiting is a call in a goroutine of its own.
func waiting[A any](call func() A) (result func() A) {
	ch := make(chan A, 1)
	go func() { ch <- call() }()
	synctest.Wait()
	return func() A { return <-ch }
}

// Two tenants with one group id are everyday life, unless the cell names no
// cluster for one of them: then they may be one tenant with a group in halves.
func TestTwins(t *testing.T) {
	var told [][2]string
	c := newCoordinator(func(cfg *group.Config) {
		cfg.Twins = func(a, b tenancy.ID) { told = append(told, [2]string{a.String(), b.String()}) }
	})
	defer c.Close()
	acme, globex, stray := scope(t, "acme"), scope(t, "globex"), scope(t, "?")
	join := func(s tenancy.Scope, id string) {
		t.Helper()
		req := consumer("")
		req.TellsID = true
		if a := c.Join(t.Context(), s, id, req); a.Code != kerr.MemberIDRequired {
			t.Fatalf("join: %v", a.Code)
		}
	}
	join(acme, "a")
	join(globex, "a")
	join(stray, "b")
	join(acme, "c")
	if len(told) != 0 {
		t.Fatalf("told %q", told)
	}
	join(stray, "c")
	join(globex, "b")
	join(globex, "b")
	want := [][2]string{{stray.ID().String(), "a"}, {"g", stray.ID().String()}}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// A group lives by its timers alone: it forms after the delay, its members'
// sessions end, and it is forgotten after five minutes. Nothing is left running.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newCoordinator(nil), scope(t, "acme")
		defer c.Close()
		start := time.Now()
		a := waiting(func() group.JoinAnswer { return c.Join(t.Context(), s, "g", consumer("")) })
		b := waiting(func() group.JoinAnswer { return c.Join(t.Context(), s, "g", consumer("")) })
		lead, follow := a(), b()
		if took := time.Since(start); took != 6*time.Second || lead.Code != nil || follow.Code != nil || len(lead.Members) != 2 {
			t.Fatalf("formed after %v: %+v, %+v", took, lead, follow)
		}
		synced := waiting(func() group.SyncAnswer {
			return c.Sync(t.Context(), s, "g", group.SyncRequest{Generation: 1, MemberID: follow.MemberID})
		})
		mine := c.Sync(t.Context(), s, "g", group.SyncRequest{Generation: 1, MemberID: lead.MemberID, Assignments: []group.Assignment{
			{MemberID: lead.MemberID, Data: []byte("x")}, {MemberID: follow.MemberID, Data: []byte("y")},
		}})
		if got := synced(); string(mine.Assignment) != "x" || string(got.Assignment) != "y" {
			t.Errorf("assigned %q and %q", mine.Assignment, got.Assignment)
		}
		for range 5 {
			time.Sleep(9 * time.Second)
			if code := c.Heartbeat(s, "g", 1, lead.MemberID, ""); code != nil {
				t.Fatal(code)
			}
			if code := c.CheckCommit(s, "g", 1, follow.MemberID, nil); code != nil {
				t.Fatal(code)
			}
		}
		time.Sleep(11 * time.Second)
		want := group.Stats{Rebalances: [group.Reasons]int64{group.Joined: 1}}
		want.Groups[group.Empty] = 1
		if got := c.Stats(); got != want {
			t.Errorf("after their sessions: %+v, want %+v", got, want)
		}
		time.Sleep(5 * time.Minute)
		if got := c.Stats().Groups; got != [group.Dead]int{} {
			t.Errorf("five minutes later: %v", got)
		}
		if code := c.Heartbeat(s, "g", 1, lead.MemberID, ""); code != kerr.UnknownMemberID {
			t.Errorf("heartbeat: %v", code)
		}
	})
}

// A client that leaves ends its wait at once; the group goes on after its
// session.
func TestClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newCoordinator(func(c *group.Config) { c.JoinDelay = 0 }), scope(t, "acme")
		defer c.Close()
		first := c.Join(t.Context(), s, "g", consumer(""))
		ctx, leave := context.WithCancel(t.Context())
		second := waiting(func() group.JoinAnswer { return c.Join(ctx, s, "g", consumer("")) })
		time.Sleep(9 * time.Second)
		c.Heartbeat(s, "g", 1, first.MemberID, "")
		start := time.Now()
		leave()
		if got := second(); got.Code != kerr.CoordinatorNotAvailable || got.Generation != -1 || time.Since(start) != 0 {
			t.Errorf("%+v after %v", got, time.Since(start))
		}
		again := waiting(func() group.JoinAnswer { return c.Join(t.Context(), s, "g", consumer(first.MemberID)) })
		if got := again(); got.Code != nil || len(got.Members) != 1 || time.Since(start) != 10*time.Second {
			t.Errorf("%+v after %v", got, time.Since(start))
		}
	})
}

// Closing frees whoever waits, and nobody can come any more.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups, bytes := tenancy.NewCeiling(10, 0.25), tenancy.NewCeiling(1<<20, 0.25)
		c, s := newCoordinator(func(c *group.Config) { c.Groups, c.Bytes = groups, bytes }), scope(t, "acme")
		a := waiting(func() group.JoinAnswer { return c.Join(t.Context(), s, "g", consumer("")) })
		if groups.Total() != 1 || bytes.Total() == 0 {
			t.Errorf("held are %d groups and %d bytes", groups.Total(), bytes.Total())
		}
		c.Close()
		if got := a(); got.Code != kerr.CoordinatorNotAvailable {
			t.Errorf("who waits is answered %+v", got)
		}
		if got := c.Join(t.Context(), s, "g", consumer("")); got.Code != kerr.CoordinatorNotAvailable {
			t.Errorf("who comes after is answered %+v", got)
		}
		if groups.Total() != 0 || bytes.Total() != 0 {
			t.Errorf("still held are %d groups and %d bytes", groups.Total(), bytes.Total())
		}
	})
}

// Only JoinGroup makes a group, and one that is refused leaves none.
func TestOnlyJoinMakesGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := tenancy.NewCeiling(10, 0)
		c, s := newCoordinator(func(c *group.Config) { c.Groups = groups }), scope(t, "acme")
		defer c.Close()
		c.Heartbeat(s, "g", 0, "m", "")
		c.Leave(s, "g", []group.Leaver{{MemberID: "m"}})
		c.Sync(t.Context(), s, "g", group.SyncRequest{MemberID: "m"})
		c.CheckCommit(s, "g", -1, "", nil)
		c.Describe(s, "g")
		c.Delete(s, "g")
		bad := consumer("")
		bad.Session = time.Hour
		c.Join(t.Context(), s, "g", bad)
		c.Join(t.Context(), s, "g", consumer("nobody"))
		if n := groups.Total(); n != 0 {
			t.Errorf("%d groups", n)
		}
	})
}

// The process's ceilings hold, and keep a reserve for other tenants.
func TestCeilings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(func(c *group.Config) {
			c.JoinDelay, c.Groups, c.Bytes = 0, tenancy.NewCeiling(8, 0.25), tenancy.NewCeiling(1<<20, 0.25)
		})
		defer c.Close()
		fill := func(s tenancy.Scope) (n int) {
			for c.Join(t.Context(), s, fmt.Sprint("g", n), consumer("")).Code == nil {
				n++
			}
			return n
		}
		acme, globex := scope(t, "acme"), scope(t, "globex")
		if n := fill(acme); n != 6 {
			t.Errorf("one tenant fills %d of 8 places", n)
		}
		big := consumer("")
		big.Protocols[0].Metadata = make([]byte, 1<<20)
		if found, code := c.Delete(acme, "g0"); !found || code != kerr.NonEmptyGroup {
			t.Errorf("Delete of a group with members: %v, %v", found, code)
		}
		d, _ := c.Describe(acme, "g0")
		c.Leave(acme, "g0", []group.Leaver{{MemberID: d.Members[0].ID}})
		if found, code := c.Delete(acme, "g0"); !found || code != nil {
			t.Errorf("Delete of an empty group: %v, %v", found, code)
		}
		if d, ok := c.Describe(acme, "g0"); ok || d.State != group.Dead {
			t.Errorf("right after: %+v", d)
		}
		if got := c.Join(t.Context(), acme, "g0", big); got.Code != kerr.CoordinatorNotAvailable {
			t.Errorf("more bytes than there are: %+v", got)
		}
		if d, ok := c.Describe(acme, "g0"); ok {
			t.Errorf("a group that could not be joined stays: %+v", d)
		}
		if got := c.Join(t.Context(), acme, "g0", consumer("")); got.Code != nil {
			t.Errorf("a place that was given back: %+v", got)
		}
		if n := fill(globex); n != 2 {
			t.Errorf("another tenant then gets %d", n)
		}
	})
}

// Ids that were told and not used take memory as well, until they expire.
func TestToldIDsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bytes := tenancy.NewCeiling(64<<10, 0)
		c := newCoordinator(func(c *group.Config) { c.Bytes = bytes })
		defer c.Close()
		acme, req := scope(t, "acme"), consumer("")
		req.TellsID, req.ClientID = true, strings.Repeat("c", 64)
		told := 0
		for c.Join(t.Context(), acme, "g", req).Code == kerr.MemberIDRequired {
			if told++; told == 1024 {
				t.Fatal("as many ids as there may be take no memory")
			}
		}
		time.Sleep(req.Session)
		synctest.Wait()
		if _, ok := c.Describe(acme, "g"); ok || bytes.Total() != 0 {
			t.Errorf("the ids have expired, and %d bytes are held", bytes.Total())
		}
	})
}

// A tenant is what its credentials resolve to: two of them are one group, and
// another tenant's of the same name is another one.
func TestTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(func(c *group.Config) { c.JoinDelay = 0 })
		defer c.Close()
		one, two, other := scope(t, "acme-1"), scope(t, "acme-2"), scope(t, "globex")
		a := c.Join(t.Context(), one, "g", consumer(""))
		if c.CheckCommit(two, "g", 1, a.MemberID, nil) != nil || c.Heartbeat(two, "g", 1, a.MemberID, "") != nil {
			t.Error("a tenant's second credential does not see its group")
		}
		if code := c.CheckCommit(other, "g", 1, a.MemberID, nil); code != kerr.IllegalGeneration {
			t.Errorf("another tenant's commit: %v", code)
		}
		if got := c.List(other); len(got) != 0 {
			t.Errorf("another tenant lists %v", got)
		}
		c.Join(t.Context(), other, "g", consumer(""))
		c.Join(t.Context(), other, "f", consumer(""))
		if got := c.List(other); len(got) != 2 || got[0].ID != "f" || got[1].ID != "g" || got[0].State != group.CompletingRebalance {
			t.Errorf("listed are %v", got)
		}
		for _, x := range []struct {
			group, topic string
			want         bool
		}{{"g", "t", true}, {"g", "u", false}, {"f", "t", false}} {
			if yes, unread := c.Subscribed(two, x.group, x.topic); yes != x.want || unread {
				t.Errorf("a member of %s is subscribed to %s: %v, unreadable: %v", x.group, x.topic, yes, unread)
			}
		}
	})
}

// A group moves to another coordinator; its members do not notice, and a parked
// request is taken up there.
func TestMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noDelay := func(c *group.Config) { c.JoinDelay = 0 }
		from, to, s := newCoordinator(noDelay), newCoordinator(noDelay), scope(t, "acme")
		defer from.Close()
		defer to.Close()
		a := from.Join(t.Context(), s, "g", consumer(""))
		from.Sync(t.Context(), s, "g", group.SyncRequest{Generation: 1, MemberID: a.MemberID})
		tells := consumer("")
		tells.TellsID = true
		b := from.Join(t.Context(), s, "g", tells).MemberID
		parked := waiting(func() group.JoinAnswer { return from.Join(t.Context(), s, "g", consumer(b)) })

		state, ok := from.Export(s, "g")
		if got := parked(); !ok || got.Code != kerr.CoordinatorNotAvailable {
			t.Errorf("who waits is answered %+v", got)
		}
		if _, ok := from.Describe(s, "g"); ok {
			t.Error("the group is still where it was")
		}
		if code := to.Import(s, "g", state); code != nil {
			t.Fatal(code)
		}
		if code := to.Import(s, "g", state); code != kerr.CoordinatorNotAvailable {
			t.Errorf("a second import: %v", code)
		}
		if code := to.Heartbeat(s, "g", 1, a.MemberID, ""); code != kerr.RebalanceInProgress {
			t.Errorf("heartbeat: %v", code)
		}
		again := consumer(b)
		again.Reattach = true
		joined := waiting(func() group.JoinAnswer { return to.Join(t.Context(), s, "g", again) })
		lead := to.Join(t.Context(), s, "g", consumer(a.MemberID))
		if got := joined(); got.Code != nil || got.Generation != 2 || got.MemberID != b || len(lead.Members) != 2 {
			t.Errorf("joined: %+v and %+v", lead, got)
		}
	})
}

// 600 consumers that come one by one become one generation, and commits of all
// of them are checked at once.
func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newCoordinator(func(c *group.Config) { c.MaxMembers, c.MaxBytes, c.NewID = 600, 1<<20, nil }), scope(t, "acme")
		defer c.Close()
		const members = 600
		answers := make([]group.JoinAnswer, members)
		var wg sync.WaitGroup
		for i := range members {
			wg.Add(1)
			go func() {
				defer wg.Done()
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				answers[i] = c.Join(t.Context(), s, "g", consumer(""))
			}()
		}
		wg.Wait()
		ids := map[string]bool{}
		for _, a := range answers {
			if a.Code != nil || a.Generation != 1 {
				t.Fatalf("%+v", a)
			}
			ids[a.MemberID] = true
		}
		if len(ids) != members {
			t.Errorf("%d ids of %d members", len(ids), members)
		}
		if i := slices.IndexFunc(answers, func(a group.JoinAnswer) bool { return a.Leader == a.MemberID }); len(answers[i].Members) != members {
			t.Errorf("the leader sees %d members", len(answers[i].Members))
		}
		for _, a := range answers {
			if code := c.CheckCommit(s, "g", 1, a.MemberID, nil); code != nil {
				t.Fatal(code)
			}
		}
	})
}
