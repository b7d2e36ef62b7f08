package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// gateFS holds the sync of the log back while there is a gate.
type gateFS struct {
	vfs.FS
	gate atomic.Pointer[gate]
}

type gate struct{ reached, open chan struct{} }

func (g *gateFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.OpenReadWrite(name, c, o...)
	return gateFile{f, g}, err
}

type gateFile struct {
	vfs.File
	fs *gateFS
}

func (f gateFile) SyncData() error {
	if g := f.fs.gate.Swap(nil); g != nil {
		close(g.reached)
		<-g.open
	}
	return f.File.SyncData()
}

// asGroup runs the calls, in order, as one group of the writer.
func asGroup(t *testing.T, b *Broker, fs *gateFS, calls ...func()) {
	t.Helper()
	g := &gate{reached: make(chan struct{}), open: make(chan struct{})}
	fs.gate.Store(g)
	var running sync.WaitGroup
	running.Go(func() { mustKV(t, b, put("the one that holds the writer", "1")) })
	<-g.reached
	for i, call := range calls {
		running.Go(call)
		awaitTrue(t, "the call waits", func() bool { return b.store.Waiting() == i+1 })
	}
	before := b.store.Syncs()
	close(g.open)
	running.Wait()
	want(t, "syncs of the group", b.store.Syncs()-before, 1)
}

// TestGroup: calls that become durable together see each other's writes, in
// the order they came.
func TestGroup(t *testing.T) {
	fs := &gateFS{FS: vfs.NewMem()}
	b := open(t, Config{FS: fs})
	ctx := context.Background()
	mustPush(t, b, tenantA, keyed("0", "qe:1:0:0:0"))
	seed := mustKV(t, b, put("k", "0"), put("p:3", "3"))[0].Version
	var pushes [4][]PushResult
	var txn TxnResult
	var created, again, fenced, reads []KVResult
	var errs [9]error
	list := keyed("0", "qe:1:0:0:1", "qe:1:0:0:2", "text")
	asGroup(t, b, fs,
		func() { pushes[0], errs[0] = b.Push(ctx, tenantA, list, nil) },
		func() { pushes[1], errs[1] = b.Push(ctx, tenantA, list, nil) },
		func() {
			pushes[2], errs[2] = b.Push(ctx, tenantA, keyed("0", "qe:1:0:0:0", "qe:1:0:0:2", "qe:1:0:0:3"), nil)
		},
		func() { created, errs[3] = b.KV(ctx, tenantA, []KVOp{put("new", "1").expecting(0), del("p:3")}) },
		func() { again, errs[4] = b.KV(ctx, tenantA, []KVOp{put("new", "2").expecting(0)}) },
		func() {
			txn, errs[5] = b.Transaction(ctx, tenantA, keyed("0", "text", "more"), []KVOp{put("k", "1").expecting(seed).must(), put("p:1", "1")})
		},
		func() { fenced, errs[6] = b.KV(ctx, tenantA, []KVOp{put("k", "2").expecting(seed).must()}) },
		func() {
			reads, errs[7] = b.KV(ctx, tenantA, []KVOp{getPrefix("p:"), getMany("new", "p:3", "k"), put("p:2", "2")})
		},
		func() { pushes[3], errs[8] = b.Push(ctx, tenantA, items("q", "0", "last"), nil) },
	)
	var lost *KVPrecondition
	if !errors.As(errs[6], &lost) || fenced != nil {
		t.Fatalf("the fence: %v", errs[6])
	}
	errs[6] = nil
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	want(t, "first", verdicts(pushes[0]), "q1 q2 q3")
	want(t, "the same", verdicts(pushes[1]), "d1 d2 d3")
	want(t, "some of them", verdicts(pushes[2]), "d0 d2 q4")
	want(t, "transaction", []any{txn.Success, verdicts(txn.Pushes)}, []any{true, "d3 q5"})
	want(t, "last", verdicts(pushes[3]), "q6")
	want(t, "created", []any{created[0].Applied, created[1].Applied}, []any{true, true})
	want(t, "again", []any{again[0].Reason, again[0].Version, string(again[0].Value)}, []any{KVExists, created[0].Version, "1"})
	want(t, "fence", []any{lost.Reason, lost.Version, string(lost.Value)}, []any{KVVersion, txn.KV[0].Version, "1"})
	want(t, "reads", fmt.Sprint(keysOf(reads[0].Rows), "|", keysOf(reads[1].Rows), reads[1].Missing), "p:1 p:2|k new[p:3]")
	want(t, "usage", b.KVStats(tenantA).Rows, 5)
}

// TestGroupSweeps: rows that are written again while they are being removed
// stay.
func TestGroupSweeps(t *testing.T) {
	fs, clock := &gateFS{FS: vfs.NewMem()}, newClock()
	b := open(t, Config{FS: fs, Clock: clock.now})
	ctx := context.Background()
	mustKV(t, b, put("a", "1").lasting(1), put("b", "1").lasting(1))
	clock.pass(time.Second)
	asGroup(t, b, fs,
		func() {
			if _, err := b.KV(ctx, tenantA, []KVOp{put("a", "2").lasting(60)}); err != nil {
				t.Error(err)
			}
		},
		func() { tidyNow(t, b) },
		func() {
			if _, err := b.KV(ctx, tenantA, []KVOp{put("b", "2").lasting(60)}); err != nil {
				t.Error(err)
			}
		},
	)
	want(t, "rows", keysOf(mustKV(t, b, getMany("a", "b"))[0].Rows), "a b")
	want(t, "usage", b.KVStats(tenantA).Rows, 3)
	want(t, "expiries", indexRows(t, b, expiryRows), 2)
	clock.pass(time.Minute)
	tidyNow(t, b)
	want(t, "usage later", b.KVStats(tenantA).Rows, 1)
}
