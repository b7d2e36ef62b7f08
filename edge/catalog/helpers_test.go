package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = &proxyclient.Error{Kind: proxyclient.KindTransport, Err: errors.New("connection refused")}

func status(code int) error { return &proxyclient.Error{Kind: proxyclient.KindStatus, Status: code} }

// record is a topic record that declares a width.
func record(topic, queueID string, width int) proxyclient.KVRow {
	return proxyclient.KVRow{Key: "qk:topiccfg:" + topic, Value: fmt.Appendf(nil, `{"qid":%q,"partitions":%d,"other":[1]}`, queueID, width)}
}

// fakeCell keeps queues by tenant. What a credential is refused, and what is
// held up, the test says by bearer.
type fakeCell struct {
	mu        sync.Mutex
	queues    map[string][]proxyclient.Queue // by cluster
	records   map[string][]proxyclient.KVRow
	listErr   map[string]error // by bearer; "" is everybody's
	kvErr     map[string]error
	confErr   map[string]error
	options   map[string]string // last configured, by cluster/topic
	putErr    error             // of every put
	version   int64
	truncated bool // the scan says so, without a way on
	lists     map[string]int
	scans     map[string]int
	confs     []string // bearer/topic
	gate      chan struct{}
	kvGate    chan struct{}
	confGate  chan struct{}
}

func newFakeCell() *fakeCell {
	return &fakeCell{
		queues: map[string][]proxyclient.Queue{}, records: map[string][]proxyclient.KVRow{},
		listErr: map[string]error{}, kvErr: map[string]error{}, confErr: map[string]error{},
		lists: map[string]int{}, scans: map[string]int{}, options: map[string]string{},
	}
}

// cluster is the bearer's part before the dot.
func cluster(bearer string) string {
	name, _, _ := strings.Cut(bearer, ".")
	return name
}

func (f *fakeCell) ListQueuesAs(context.Context, tenancy.Claim) (struct{}, error) {
	return struct{}{}, nil
}

func (f *fakeCell) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	return tenancy.Identity{ClusterID: cluster(c.Bearer().Reveal())}, nil
}

func orAll(m map[string]error, bearer string) error {
	if err := m[bearer]; err != nil {
		return err
	}
	return m[""]
}

func (f *fakeCell) ListQueues(_ context.Context, s tenancy.Scope) ([]proxyclient.Queue, error) {
	bearer := s.Bearer().Reveal()
	f.mu.Lock()
	f.lists[bearer]++
	queues, err, gate := append([]proxyclient.Queue(nil), f.queues[cluster(bearer)]...), orAll(f.listErr, bearer), f.gate
	f.mu.Unlock()
	if gate != nil { // what was read before is what is answered
		<-gate
	}
	if err != nil {
		return nil, err
	}
	return queues, nil
}

func (f *fakeCell) KV(_ context.Context, s tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	bearer := s.Bearer().Reveal()
	if ops[0].Op != proxyclient.KVGetPrefix {
		return f.rows(bearer, ops)
	}
	f.mu.Lock()
	f.scans[bearer]++
	gate := f.kvGate
	f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := orAll(f.kvErr, bearer); err != nil {
		return nil, err
	}
	// Two rows a page, so that scans go on.
	res := proxyclient.KVResult{Truncated: f.truncated}
	for _, row := range f.records[cluster(bearer)] {
		if row.Key <= ops[0].After {
			continue
		}
		if len(res.Rows) == 2 {
			res.Truncated, res.NextAfter = true, res.Rows[1].Key
			break
		}
		res.Rows = append(res.Rows, row)
	}
	return []proxyclient.KVResult{res}, nil
}

// rows reads and writes single rows. Every row has a version; those a test has
// put there itself have the lowest.
func (f *fakeCell) rows(bearer string, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := orAll(f.kvErr, bearer); err != nil {
		return nil, err
	}
	records, out := f.records[cluster(bearer)], make([]proxyclient.KVResult, len(ops))
	for i, op := range ops {
		at := slices.IndexFunc(records, func(r proxyclient.KVRow) bool { return r.Key == op.Key })
		lost := at < 0 && op.Expect != (proxyclient.Expect{}) || at >= 0 && op.Expect != (proxyclient.Expect{}) &&
			op.Expect != proxyclient.ExpectVersion(records[at].Version)
		switch {
		case op.Op == proxyclient.KVGetMany:
			for _, key := range op.Keys {
				at := slices.IndexFunc(records, func(r proxyclient.KVRow) bool { return r.Key == key })
				if at < 0 {
					out[i].Missing = append(out[i].Missing, key)
					continue
				}
				out[i].Rows = append(out[i].Rows, records[at])
			}
			continue
		case op.Op == proxyclient.KVPut && f.putErr != nil:
			return nil, f.putErr
		case lost, op.Op == proxyclient.KVDelete && at < 0:
			continue
		}
		f.version++
		out[i] = proxyclient.KVResult{Applied: true, Version: f.version}
		if at >= 0 {
			records = slices.Delete(records, at, at+1)
		}
		if op.Op == proxyclient.KVPut {
			records = append(records, proxyclient.KVRow{Key: op.Key, Value: op.Value, Version: f.version})
			slices.SortFunc(records, func(a, b proxyclient.KVRow) int { return strings.Compare(a.Key, b.Key) })
		}
	}
	f.records[cluster(bearer)] = records
	return out, nil
}

func (f *fakeCell) DeleteQueue(_ context.Context, s tenancy.Scope, queue string) (bool, error) {
	bearer := s.Bearer().Reveal()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := orAll(f.confErr, bearer); err != nil {
		return false, err
	}
	before := len(f.queues[cluster(bearer)])
	f.queues[cluster(bearer)] = slices.DeleteFunc(f.queues[cluster(bearer)], func(q proxyclient.Queue) bool { return q.Name == queue })
	return len(f.queues[cluster(bearer)]) < before, nil
}

func (f *fakeCell) Configure(_ context.Context, s tenancy.Scope, queue string, options map[string]any) (string, error) {
	bearer := s.Bearer().Reveal()
	f.mu.Lock()
	f.confs = append(f.confs, bearer+"/"+queue)
	gate := f.confGate
	f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := orAll(f.confErr, bearer); err != nil {
		return "", err
	}
	text, err := json.Marshal(options)
	if err != nil {
		return "", err
	}
	f.options[cluster(bearer)+"/"+queue] = string(text)
	id := "id-" + queue
	for _, q := range f.queues[cluster(bearer)] {
		if q.Name == queue {
			return q.ID, nil
		}
	}
	f.queues[cluster(bearer)] = append(f.queues[cluster(bearer)], proxyclient.Queue{ID: id, Name: queue})
	return id, nil
}

func (f *fakeCell) set(change func(*fakeCell)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeCell) listed(bearer string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists[bearer]
}

func (f *fakeCell) scanned(bearer string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scans[bearer]
}

func (f *fakeCell) configured() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.confs...)
}

// rig is a catalog on a fake cell, and proved Scopes by bearer.
type rig struct {
	*catalog.Catalog
	t    testing.TB
	cell *fakeCell

	mu     sync.Mutex
	now    time.Time
	scopes map[string]tenancy.Scope
	verify *tenancy.Verifier[struct{}]
}

func newRig(t testing.TB, change ...func(*catalog.Config)) *rig {
	t.Helper()
	r := &rig{t: t, cell: newFakeCell(), now: time.Unix(1_800_000_000, 0), scopes: map[string]tenancy.Scope{}}
	r.verify = tenancy.NewVerifier[struct{}](r.cell, tenancy.VerifierConfig{})
	cfg := catalog.Config{DefaultPartitions: 4, MaxPartitions: 100, MaxTenants: 16, MaxCreates: 3, Clock: r.clock, Log: zap.NewNop()}
	for _, f := range change {
		f(&cfg)
	}
	r.Catalog = catalog.New(r.cell, cfg)
	return r
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) as(bearer string) tenancy.Scope {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.scopes[bearer]; ok {
		return s
	}
	p, err := r.verify.Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret(bearer), ""))
	if err != nil {
		r.t.Fatal(err)
	}
	r.scopes[bearer] = p.Scope
	return p.Scope
}

// queue puts a queue into a cluster.
func (r *rig) queue(cluster, name string, live int) {
	r.cell.set(func(f *fakeCell) {
		f.queues[cluster] = append(f.queues[cluster], proxyclient.Queue{ID: "id-" + name, Name: name, Partitions: live})
	})
}

// show prints a listing as "name:width …", or the error.
func show(l *catalog.Listing, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for _, t := range l.Topics() {
		out = append(out, fmt.Sprintf("%s:%d", t.Name, t.Width))
	}
	return strings.Join(out, " ")
}

func (r *rig) get(bearer string) string {
	return show(r.Get(context.Background(), r.as(bearer)))
}

func (r *rig) fresh(bearer string) string {
	return show(r.Fresh(context.Background(), r.as(bearer)))
}

func (r *rig) wants(what, got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (r *rig) calls(bearer string, lists, scans int) {
	r.t.Helper()
	if l, s := r.cell.listed(bearer), r.cell.scanned(bearer); l != lists || s != scans {
		r.t.Errorf("%s: %d listings and %d scans, want %d and %d", bearer, l, s, lists, scans)
	}
}
