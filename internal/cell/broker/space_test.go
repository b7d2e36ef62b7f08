package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// watchedFS tells of log files made and removed, and fails syncs on demand.
type watchedFS struct {
	vfs.FS
	made     atomic.Int64
	removed  chan string
	failSync atomic.Bool
}

func newWatchedFS(fs vfs.FS) *watchedFS {
	return &watchedFS{FS: fs, removed: make(chan string, 1000)}
}

func (w *watchedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".log.tmp") {
		w.made.Add(1)
	}
	return w.FS.Create(name, c)
}

func (w *watchedFS) Remove(name string) error {
	err := w.FS.Remove(name)
	if strings.Contains(name, "/log/") {
		w.removed <- name
	}
	return err
}

func (w *watchedFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := w.FS.OpenReadWrite(name, c, o...)
	return watchedFile{f, w}, err
}

type watchedFile struct {
	vfs.File
	fs *watchedFS
}

func (f watchedFile) SyncData() error {
	if f.fs.failSync.Load() {
		return errors.New("the disk is gone")
	}
	return f.File.SyncData()
}

func TestStorageFull(t *testing.T) {
	fs := vfs.NewMem()
	storageFull(t, fs, "data", func(mib uint64) {
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: mib << 20, TotalBytes: 1 << 40})
	})
}

// storageFull takes a broker through a disk that fills up and is emptied again;
// free leaves so much of it.
func storageFull(t *testing.T, fs vfs.FS, dir string, free func(mib uint64)) {
	t.Helper()
	ctx := context.Background()
	free(300)
	b := open(t, Config{FS: fs, Dir: dir})
	mustPush(t, b, tenantA, items("q", "0", "a"))
	mustPush(t, b, tenantA, items("big", "0", "a"))
	mustKV(t, b, put("k", "1"), put("l", "1"))
	mustPush(t, b, tenantA, items("native", "0", "n", "m"))
	taken := mustPop(t, b, tenantA, PopRequest{Queue: "native"})

	free(250)
	if _, err := b.Push(ctx, tenantA, items("q", "0", "b"), nil); !errors.Is(err, ErrStorageFull) {
		t.Errorf("push: %v", err)
	}
	if _, err := b.Configure(ctx, tenantA, "new", nil); !errors.Is(err, ErrStorageFull) {
		t.Errorf("configure: %v", err)
	}
	if _, err := b.KV(ctx, tenantA, []KVOp{put("k", "2"), del("l")}); !errors.Is(err, ErrStorageFull) {
		t.Errorf("put: %v", err)
	}
	if _, err := b.Transaction(ctx, tenantA, items("q", "0", "b"), []KVOp{put("k", "2")}); !errors.Is(err, ErrStorageFull) {
		t.Errorf("transaction: %v", err)
	}
	want(t, "reading keys goes on", string(mustKV(t, b, get("k"))[0].Value), "1")
	want(t, "deleting keys goes on", mustKV(t, b, del("l"))[0].Applied, true)
	want(t, "acknowledging goes on", mustAck(t, b, tenantA, ackOf(&taken, 0, Completed))[0].Refused, "")
	want(t, "popping goes on", delivered(mustPop(t, b, tenantA, PopRequest{Queue: "native"})), "0/1:m")
	want(t, "reading goes on", payloads(fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"})), "0:a")
	if existed, err := b.Delete(ctx, tenantA, "big"); !existed || err != nil {
		t.Errorf("deleting makes space, but: %v, %v", existed, err)
	}
	free(100)
	if _, err := b.Delete(ctx, tenantA, "q"); !errors.Is(err, ErrStorageFull) {
		t.Errorf("delete with next to nothing left: %v", err)
	}
	if _, err := b.KV(ctx, tenantA, []KVOp{del("k")}); !errors.Is(err, ErrStorageFull) {
		t.Errorf("delete of a key with next to nothing left: %v", err)
	}
	free(300)
	want(t, "put with space again", mustKV(t, b, put("k", "2"))[0].Applied, true)
	want(t, "offset", mustPush(t, b, tenantA, items("q", "0", "b"))[0].Offset, 1)
	want(t, "nothing came of the refused ones", len(b.Queues(tenantA)), 2)
	closeBroker(t, b)
	b = open(t, Config{FS: fs, Dir: dir})
	want(t, "after a restart", payloads(fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"})), "0:a 1:b")
	want(t, "acknowledged before it", delivered(mustPop(t, b, tenantA, PopRequest{Queue: "native", Batch: 9})), "0/1:m")
	closeBroker(t, b)
}

// TestSpaceComesBack deletes nearly everything: the files go, and what is left
// in them is copied forward.
func TestSpaceComesBack(t *testing.T) {
	fs := newWatchedFS(vfs.NewMem())
	b := open(t, Config{FS: fs, SegmentBytes: 16 << 10})
	var kept []string
	filler := strings.Repeat("x", 2000)
	for i := range 100 {
		mustPush(t, b, tenantA, items("gone", fmt.Sprint(i%5), filler, filler))
		p := fmt.Sprintf("keep-%d", i)
		kept = append(kept, fmt.Sprintf("%d:%s", i, p))
		mustPush(t, b, tenantA, items("kept", "0", p))
	}
	files := int(fs.made.Load())
	if files < 20 {
		t.Fatalf("%d files", files)
	}
	if _, err := b.Delete(context.Background(), tenantA, "gone"); err != nil {
		t.Fatal(err)
	}
	for range files - 10 {
		select {
		case <-fs.removed:
		case <-time.After(30 * time.Second):
			t.Fatalf("of %d files, %d were not removed in time", files, files-10)
		}
	}
	check := func(b *Broker) {
		t.Helper()
		want(t, "kept", payloads(fetchOne(t, b, tenantA, FetchEntry{Queue: "kept", Partition: "0"})), strings.Join(kept, " "))
		want(t, "queues", len(b.Queues(tenantA)), 1)
	}
	check(b)
	closeBroker(t, b)
	check(open(t, Config{FS: fs, SegmentBytes: 16 << 10}))
}

// TestFilesAreRecycled writes far more than is kept.
func TestFilesAreRecycled(t *testing.T) {
	fs := newWatchedFS(vfs.NewMem())
	b := open(t, Config{FS: fs, SegmentBytes: 16 << 10})
	filler := strings.Repeat("x", 2000)
	const rounds = 40
	for range rounds {
		for range 15 {
			mustPush(t, b, tenantA, items("q", "0", filler))
		}
		if _, err := b.Delete(context.Background(), tenantA, "q"); err != nil {
			t.Fatal(err)
		}
		awaitTrue(t, "the files are unused", func() bool {
			inUse, _ := b.store.Files()
			return inUse <= 2
		})
	}
	if n := fs.made.Load(); n > 12 {
		t.Errorf("%d files were made for %d rounds", n, rounds)
	}
}

// awaitTrue waits for what has no channel to wait on.
func awaitTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("not in 30 s: %s", what)
		}
	}
}

func TestFailedSyncPoisons(t *testing.T) {
	mem := vfs.NewMem()
	fs := newWatchedFS(mem)
	b := open(t, Config{FS: fs})
	ctx := context.Background()
	mustPush(t, b, tenantA, items("q", "0", "a"))
	fs.failSync.Store(true)
	if _, err := b.Push(ctx, tenantA, items("q", "0", "b"), nil); !errors.Is(err, store.ErrPoisoned) {
		t.Errorf("push with a failing sync: %v", err)
	}
	fs.failSync.Store(false)
	if _, err := b.Push(ctx, tenantA, items("q", "0", "c"), nil); !errors.Is(err, store.ErrPoisoned) {
		t.Errorf("push after a failed sync: %v", err)
	}
	if _, err := b.Delete(ctx, tenantA, "q"); !errors.Is(err, store.ErrPoisoned) {
		t.Errorf("delete after a failed sync: %v", err)
	}
	got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"})
	want(t, "what was synced", payloads(got), "0:a")
	want(t, "high watermark", got.HighWatermark, 1)
	closeBroker(t, b)

	b = open(t, Config{FS: mem})
	if r := mustPush(t, b, tenantA, items("q", "0", "d"))[0].Offset; r != 1 && r != 2 {
		t.Errorf("offset %d after reopening", r)
	}
}

// TestSecondProcess locks the folder from another process.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperHoldsFolder$", "-test.v", "--", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said string
	for b := make([]byte, 1); !strings.Contains(said, holdsFolder); said += string(b) {
		if _, err := out.Read(b); err != nil {
			t.Fatalf("the helper said %q: %v", said, err)
		}
	}
	if _, err := Open(Config{Dir: dir}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("opened a folder that another process holds: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	b, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("opened a folder twice in one process: %v", err)
	}
	closeBroker(t, b)
}

const holdsFolder = "the folder is held"

// TestHelperHoldsFolder is the other process of TestSecondProcess.
func TestHelperHoldsFolder(t *testing.T) {
	args := os.Args
	if len(args) < 2 || args[len(args)-2] != "--" {
		t.Skip("only for TestSecondProcess")
	}
	b, err := Open(Config{Dir: args[len(args)-1]})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(holdsFolder)
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent closes it
	closeBroker(t, b)
}

// TestReadersDoNotNotice reads one queue over and over while its chunks are
// copied forward and the files they were in get used again.
func TestReadersDoNotNotice(t *testing.T) {
	fs := newWatchedFS(vfs.NewMem())
	b := open(t, Config{FS: fs, SegmentBytes: 16 << 10})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var expected []string
	filler := strings.Repeat("x", 3000)
	for i := range 60 {
		p := fmt.Sprintf("keep-%d", i)
		expected = append(expected, fmt.Sprintf("%d:%s", i, p))
		mustPush(t, b, tenantA, append(items("kept", "0", p), items("gone", "0", filler)...))
	}
	all := strings.Join(expected, " ")
	bad := make(chan string, 2)
	for range 2 {
		go func() {
			for ctx.Err() == nil {
				r, err := b.Fetch(context.Background(), tenantA, FetchRequest{Entries: []FetchEntry{{Queue: "kept", Partition: "0", MaxBytes: 1 << 20}}})
				if err != nil {
					bad <- err.Error()
					return
				}
				if got := payloads(r[0]); got != all {
					bad <- got
					return
				}
			}
			bad <- ""
		}()
	}
	for range 15 {
		for range 10 {
			mustPush(t, b, tenantA, items("gone", "0", filler))
		}
		if _, err := b.Delete(ctx, tenantA, "gone"); err != nil {
			t.Fatal(err)
		}
		awaitTrue(t, "the files are unused", func() bool {
			inUse, _ := b.store.Files()
			return inUse <= 3
		})
	}
	cancel()
	for range 2 {
		if got := <-bad; got != "" {
			t.Errorf("a reader saw %.300s", got)
		}
	}
}

// TestUIDsAreNotGivenAgain: what is left of a deleted queue would turn up in
// the next one.
func TestUIDsAreNotGivenAgain(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, Config{FS: fs})
	mustPush(t, b, tenantA, items("q", "0", "a"))
	if _, err := b.Delete(context.Background(), tenantA, "q"); err != nil {
		t.Fatal(err)
	}
	closeBroker(t, b)
	next := b.machine.nextUID
	b = open(t, Config{FS: fs})
	want(t, "next uid", b.machine.nextUID, next)
}

// TestFailedOpenLeavesNothing: no lock, no goroutine (TestMain looks).
func TestFailedOpenLeavesNothing(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, Config{FS: fs, SegmentBytes: 16 << 10})
	mustPush(t, b, tenantA, items("q", "0", strings.Repeat("a", 20_000), "b"))
	closeBroker(t, b)
	names, err := fs.List("data/log")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := fs.Rename("data/log/"+name, "data/log/"+name+".away"); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := Open(Config{FS: fs, Dir: "data"}); err == nil {
		closeBroker(t, b)
		t.Error("opened a folder whose log is missing")
	}
	for _, name := range names {
		if err := fs.Rename("data/log/"+name+".away", "data/log/"+name); err != nil {
			t.Fatal(err)
		}
	}
	b = open(t, Config{FS: fs})
	want(t, "records", len(fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: "0"}).Records), 2)
}
