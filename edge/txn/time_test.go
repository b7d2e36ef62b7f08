package txn

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// timed is a coordinator that looks after its deadlines, in a bubble's time.
type timed struct {
	*Coordinator
	t            *testing.T
	store        *memoryStore
	open, staged *tenancy.Ceiling
	me           Caller
}

func inTime(t *testing.T, test func(*timed)) {
	t.Helper()
	scope := scopeOf(t, "acme")
	synctest.Test(t, func(t *testing.T) {
		c := newTimed(t, scope)
		ctx, stop := context.WithCancel(t.Context())
		running := make(chan struct{})
		go c.run(ctx, running)
		test(c)
		stop()
		<-running
	})
}

func newTimed(t *testing.T, scope tenancy.Scope) *timed {
	c := &timed{
		t: t, open: tenancy.NewCeiling(4, 0), staged: tenancy.NewCeiling(1<<20, 0),
		store: &memoryStore{rng: rand.New(rand.NewPCG(1, 1)), rows: map[string]memoryRow{}},
	}
	c.Coordinator = New(Config{
		Store: c.store, Limits: Limits{Bytes: 1 << 20, Records: 1000, Body: 1 << 20, Partitions: 100}, Open: c.open, Staged: c.staged,
	})
	c.me = Caller{Scope: scope, Session: NewSession(), ID: "id", Producer: Nobody()}
	return c
}

func (c *timed) run(ctx context.Context, ended chan<- struct{}) {
	defer close(ended)
	c.Run(ctx)
}

// begin has a transaction with a record and an offset open.
func (c *timed) begin(timeout time.Duration) {
	c.t.Helper()
	ctx := c.t.Context()
	r := c.Init(ctx, c.me, timeout)
	c.want("init", r, OK)
	c.me.Producer = r.Producer
	tp := TopicPartition{"t", 0}
	g := Group{ID: "g", Index: Put{Key: "index"}}
	c.want("add", c.AddPartitions(ctx, c.me, []TopicPartition{tp}), OK)
	c.want("stage", c.StageRecords(ctx, c.me, Batches{TopicPartition: tp, Chunk: Chunk{Items: []byte(",record"), Count: 1}, Bytes: 1}), OK)
	c.want("group", c.AddGroup(ctx, c.me, g, 64), OK)
	c.want("offsets", c.StageOffsets(ctx, c.me, g, []Offset{{Group: "g", Topic: "in", Row: Put{Key: "offset"}}}, 64), OK)
}

func (c *timed) want(what string, r Reply, want Outcome) {
	c.t.Helper()
	if r.Outcome != want {
		c.t.Fatalf("%s: %s, want %s", what, outcomeWords[r.Outcome], outcomeWords[want])
	}
}

// A transaction that nobody asks about ends at its timeout: what it staged is
// gone, its offsets are stable again, and a late commit is refused.
func TestSweepExpires(t *testing.T) {
	inTime(t, func(c *timed) {
		c.begin(30 * time.Second)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if c.staged.Total() == 0 || len(c.Pending(c.me.Scope, "g")) != 1 {
			t.Fatal("it ended before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if c.Pending(c.me.Scope, "g") != nil {
			t.Error("offsets of an ended transaction are pending")
		}
		if v := c.Find(c.me.Scope, "id"); v.Phase != Expired {
			t.Errorf("it is %s", v.Phase)
		}
		c.want("late commit", c.End(c.t.Context(), c.me, true), TimedOut)
		c.want("abort", c.End(c.t.Context(), c.me, false), OK)
		if len(c.store.log) != 0 {
			t.Errorf("written: %q", c.store.log)
		}
	})
}

// A connection that closes leaves its transaction to another one, until its time;
// then nothing of it is held.
func TestSweepForgetsOrphans(t *testing.T) {
	inTime(t, func(c *timed) {
		c.begin(30 * time.Second)
		time.Sleep(10 * time.Second)
		c.Close(c.me.Session)
		time.Sleep(15 * time.Second)
		c.me.Session = NewSession()
		c.want("commit from another connection", c.End(c.t.Context(), c.me, true), OK)
		if want := []string{",record", "index", "offset"}; !slices.Equal(c.store.log, want) {
			t.Errorf("written: %q, want %q", c.store.log, want)
		}
		c.begin(30 * time.Second)
		c.Close(c.me.Session)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if c.Held() != 1 {
			t.Error("it ended before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if c.Held() != 0 || c.open.Total() != 0 || c.staged.Total() != 0 {
			t.Errorf("held: %d ids, %d of the ceiling, %d bytes", c.Held(), c.open.Total(), c.staged.Total())
		}
	})
}

// A request waits for the one before it, but not for ever.
func TestRequestsTakeTurns(t *testing.T) {
	inTime(t, func(c *timed) {
		c.begin(time.Minute)
		e := c.all()[0]
		<-e.turn // somebody is at it
		began := time.Now()
		c.want("commit", c.End(c.t.Context(), c.me, true), Busy)
		if took := time.Since(began); took != defaultPatience {
			t.Errorf("it waited %s, want %s", took, defaultPatience)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if v := c.Find(c.me.Scope, "id"); v.Phase != Open {
			t.Errorf("what a request is at has become %s", v.Phase)
		}
		e.turn <- struct{}{}
		c.want("commit, late", c.End(c.t.Context(), c.me, true), TimedOut)
	})
}

// A stage that is handed over is whole on the other side, and gone on this one.
func TestExportImport(t *testing.T) {
	inTime(t, func(c *timed) {
		ctx, scope := c.t.Context(), c.me.Scope
		c.begin(time.Minute)
		held := c.staged.Total()
		stage, ok := c.Export(ctx, scope, "id")
		if !ok || c.Held() != 0 || c.staged.Total() != 0 || c.open.Total() != 0 || c.Pending(scope, "g") != nil {
			t.Fatalf("export: %v, %d held, %d bytes", ok, c.Held(), c.staged.Total())
		}
		if _, again := c.Export(ctx, scope, "id"); again {
			t.Error("exported twice")
		}
		to := newTimed(t, scope)
		to.Coordinator.cfg.Store, to.me = c.store, c.me
		if !to.Import(scope, "id", stage) || to.Import(scope, "id", stage) {
			t.Error("import: it must be taken once")
		}
		if to.Held() != 1 || to.staged.Total() != held || len(to.Pending(scope, "g")) != 1 {
			t.Errorf("imported: %d held, %d bytes of %d", to.Held(), to.staged.Total(), held)
		}
		back, ok := to.Export(ctx, scope, "id")
		if stage.Held = back.Held; !ok || !reflect.DeepEqual(back, stage) {
			t.Errorf("there and back:\n%+v\nwant\n%+v", back, stage)
		}
		if !to.Import(scope, "id", back) {
			t.Fatal("import again")
		}
		to.want("commit over there", to.End(ctx, to.me, true), OK)
		if want := []string{",record", "index", "offset"}; !slices.Equal(c.store.log, want) {
			t.Errorf("written: %q, want %q", c.store.log, want)
		}
	})
}

// An import that finds no room takes nothing.
func TestImportWithoutRoom(t *testing.T) {
	inTime(t, func(c *timed) {
		c.begin(time.Minute)
		stage, _ := c.Export(c.t.Context(), c.me.Scope, "id")
		for _, full := range []Config{
			{Open: tenancy.NewCeiling(0, 0), Staged: tenancy.NewCeiling(1<<20, 0)},
			{Open: tenancy.NewCeiling(4, 0), Staged: tenancy.NewCeiling(1, 0)},
		} {
			to := New(full)
			if to.Import(c.me.Scope, "id", stage) || to.Held() != 0 || full.Open.Total() != 0 || full.Staged.Total() != 0 {
				t.Errorf("%d held, %d ids, %d bytes", to.Held(), full.Open.Total(), full.Staged.Total())
			}
		}
	})
}

// Ids that are at rest make room; those with a transaction never do.
func TestOpenCeiling(t *testing.T) {
	inTime(t, func(c *timed) {
		ctx := c.t.Context()
		c.begin(time.Minute)
		other := func(id string) Caller {
			by := Caller{Scope: c.me.Scope, Session: NewSession(), ID: id, Producer: Nobody()}
			return by
		}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			c.want("init "+id, c.Init(ctx, other(id), time.Minute), OK)
		}
		if c.Held() != 4 || c.Find(c.me.Scope, "id").Phase != Open || c.Find(c.me.Scope, "e").Producer == Nobody() {
			t.Errorf("%d are held", c.Held())
		}
		for _, id := range []string{"a", "b", "c"} {
			by := other(id)
			by.Producer = c.Init(ctx, by, time.Minute).Producer
			c.want("open "+id, c.AddPartitions(ctx, by, []TopicPartition{{"t", 0}}), OK)
		}
		c.want("init where all are open", c.Init(ctx, other("d"), time.Minute), Busy)
		c.want("commit", c.End(ctx, c.me, true), OK)
		c.want("init where one has ended", c.Init(ctx, other("d"), time.Minute), OK)
	})
}
