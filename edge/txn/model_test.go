package txn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// memoryStore is a cell's rows and its log, in memory. It loses answers, before
// and after the fact, as chance has it.
type memoryStore struct {
	rng     *rand.Rand
	loss    float64
	rows    map[string]memoryRow
	version int64
	log     []string
}

type memoryRow struct {
	value   []byte
	version int64
}

var errNoAnswer = errors.New("no answer")

func (m *memoryStore) lose() bool { return m.rng.Float64() < m.loss }

func (m *memoryStore) Read(_ context.Context, _ tenancy.Scope, id string) ([]byte, int64, error) {
	if m.lose() {
		return nil, 0, errNoAnswer
	}
	r := m.rows[id]
	return r.value, r.version, nil
}

func (m *memoryStore) Write(_ context.Context, _ tenancy.Scope, id string, value []byte, expect int64, b Bundle) (Written, error) {
	if m.lose() {
		return Written{}, errNoAnswer
	}
	if r := m.rows[id]; r.version != expect {
		if m.rng.IntN(4) == 0 {
			return Written{}, nil // a verdict that lacks the winner
		}
		return Written{Version: r.version, Value: r.value}, nil
	}
	m.version += 1 + m.rng.Int64N(9)
	m.rows[id] = memoryRow{value, m.version}
	for _, c := range b.Chunks {
		m.log = append(m.log, string(c.Items))
	}
	for _, p := range b.Puts {
		m.log = append(m.log, p.Key)
	}
	if m.lose() {
		return Written{}, errNoAnswer
	}
	return Written{Applied: true, Version: m.version}, nil
}

// world is a producer's life against a store that loses answers and gateways that
// restart, with what must have come of it.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	now    time.Time
	store  *memoryStore
	coord  *Coordinator
	scope  tenancy.Scope
	me     Caller
	zombie []Caller
	want   []string // the log
	seq    map[string]int32
	n      int
	trace  []string
}

func (w *world) restart() {
	w.note("restart")
	w.coord = New(Config{
		Store: w.store, Limits: Limits{Bytes: 1 << 20, Records: 1000, Body: 1 << 20, Partitions: 100},
		Open: tenancy.NewCeiling(4, 0), Staged: tenancy.NewCeiling(1<<20, 0), Clock: func() time.Time { return w.now },
	})
	w.me.Session = NewSession()
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// until repeats a request as clients do, with a restart now and then.
func (w *world) until(what string, do func() Reply) Outcome {
	for range 200 {
		r := do()
		w.note("%s: %d", what, r.Outcome)
		if r.Outcome != Unavailable && r.Outcome != Busy {
			return r.Outcome
		}
		if w.rng.IntN(8) == 0 {
			w.restart()
		}
	}
	w.fail("%s has no end", what)
	return 0
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.trace[max(len(w.trace)-40, 0):], "\n"))
}

// init makes the producer, or makes it anew; the one before is a zombie then.
func (w *world) init(named bool) {
	by := w.me
	if !named {
		by.Producer = Nobody()
	}
	var got Producer
	out := w.until("init", func() Reply {
		by.Session = w.me.Session
		r := w.coord.Init(context.Background(), by, time.Minute)
		got = r.Producer
		return r
	})
	if out != OK {
		w.fail("init %v as %v: %d", named, by.Producer, out)
	}
	if w.me.Producer.Named() && got != w.me.Producer {
		w.zombie = append(w.zombie, w.me)
	}
	w.me.Producer, w.seq = got, map[string]int32{}
}

// transaction is one, to its end. It says whether its records must be there.
func (w *world) transaction() {
	w.n++
	var mine []string
	lost := false
	step := func(what string, do func() Reply) {
		if lost {
			return
		}
		if w.rng.IntN(12) == 0 {
			w.restart()
		}
		if w.rng.IntN(30) == 0 {
			w.now = w.now.Add(time.Minute)
			w.coord.Sweep()
		}
		switch out := w.until(what, do); out {
		case OK:
		case Gone, TimedOut, Invalid:
			lost = true
		default:
			w.fail("%s: %d", what, out)
		}
	}
	step("add", func() Reply {
		return w.coord.AddPartitions(context.Background(), w.me, []TopicPartition{{"t", 0}, {"t", 1}})
	})
	for range w.rng.IntN(4) {
		tp := TopicPartition{"t", w.rng.Int32N(2)}
		key := fmt.Sprint(tp.Index)
		name := fmt.Sprintf(",%d-%d", w.n, len(mine))
		first := w.seq[key]
		b := Batches{TopicPartition: tp, Sequenced: true, First: first, Last: first, Chunk: Chunk{Items: []byte(name), Count: 1}, Bytes: 1}
		for range 1 + w.rng.IntN(2) { // it may come twice
			step("stage", func() Reply { return w.coord.StageRecords(context.Background(), w.me, b) })
		}
		if !lost {
			w.seq[key], mine = first+1, append(mine, name)
		}
	}
	if w.rng.IntN(2) == 0 {
		g := Group{ID: "g", Index: Put{Key: "index"}}
		step("group", func() Reply { return w.coord.AddGroup(context.Background(), w.me, g, 64) })
		o := Offset{Group: "g", Topic: "in", Row: Put{Key: fmt.Sprintf("offset-%d", w.n)}}
		step("offsets", func() Reply { return w.coord.StageOffsets(context.Background(), w.me, g, []Offset{o}, 64) })
		mine = append(mine, "index", o.Row.Key)
	}
	w.annoy()
	w.finish(mine, lost)
}

// finish ends the transaction as a client would: what it is told must be so.
func (w *world) finish(mine []string, lost bool) {
	end := func(commit bool) Outcome {
		return w.until(fmt.Sprint("end ", commit), func() Reply { return w.coord.End(context.Background(), w.me, commit) })
	}
	if !lost && w.rng.IntN(4) > 0 {
		if w.rng.IntN(12) == 0 {
			w.restart()
		}
		if w.rng.IntN(6) == 0 { // it gives up after one try
			r := w.coord.End(context.Background(), w.me, true)
			w.note("end once: %d", r.Outcome)
		} else {
			switch out := end(true); out {
			case OK:
				w.want = append(w.want, mine...)
				return
			case Gone, TimedOut, Invalid:
			default:
				w.fail("commit: %d", out)
			}
		}
	}
	switch out := end(false); out {
	case OK: // nothing is there
	case Invalid: // it was committed
		w.want = append(w.want, mine...)
	default:
		w.fail("abort: %d", out)
	}
	if lost {
		w.init(true) // as clients do after an error
	}
}

// annoy has a producer of before try everything: nothing may come of it.
func (w *world) annoy() {
	if len(w.zombie) == 0 || w.rng.IntN(3) > 0 {
		return
	}
	z := w.zombie[w.rng.IntN(len(w.zombie))]
	z.Session = NewSession()
	ctx := context.Background()
	tp := TopicPartition{"t", 0}
	for what, do := range map[string]func() Reply{
		"adds": func() Reply { return w.coord.AddPartitions(ctx, z, []TopicPartition{tp}) },
		"stages": func() Reply {
			return w.coord.StageRecords(ctx, z, Batches{TopicPartition: tp, Chunk: Chunk{Items: []byte(",zombie"), Count: 1}})
		},
		"commits": func() Reply { return w.coord.End(ctx, z, true) },
		"aborts":  func() Reply { return w.coord.End(ctx, z, false) },
	} {
		if out := w.until("zombie "+what, do); out != Fenced {
			w.fail("zombie %v %s: %d, the producer is %v", z.Producer, what, out, w.me.Producer)
		}
	}
}

// Random lives: whatever answers are lost and whenever the gateway restarts, what
// the producer was told is what the log has, once.
func TestCoordinatorAgainstTheModel(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := &world{
			t: t, rng: rng, now: time.Unix(1_790_000_000, 0), scope: scopeOf(t, "acme"),
			store: &memoryStore{rng: rng, loss: []float64{0, 0.1, 0.3}[rng.IntN(3)], rows: map[string]memoryRow{}},
		}
		w.me = Caller{Scope: w.scope, ID: "id", Producer: Nobody()}
		w.restart()
		w.init(false)
		for range 25 {
			if w.rng.IntN(5) == 0 {
				w.init(w.rng.IntN(2) == 0)
			}
			w.transaction()
		}
		if !slices.Equal(w.store.log, w.want) {
			w.fail("seed %d: the log is\n%q\nwant\n%q", seed, w.store.log, w.want)
		}
	}
}

// modelCell names the cluster after the bearer.
type modelCell struct{}

func (modelCell) ListQueuesAs(context.Context, tenancy.Claim) (int, error) { return 0, nil }

func (modelCell) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	return tenancy.Identity{ClusterID: c.Bearer().Reveal()}, nil
}

func scopeOf(t testing.TB, cluster string) tenancy.Scope {
	t.Helper()
	v := tenancy.NewVerifier[int](modelCell{}, tenancy.VerifierConfig{})
	p, err := v.Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret(cluster), ""))
	if err != nil {
		t.Fatal(err)
	}
	return p.Scope
}
