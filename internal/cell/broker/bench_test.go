package broker

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// unsynced is a file system whose log is not synced: what a push costs
// without its disk.
type unsynced struct{ vfs.FS }

func (u unsynced) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := u.FS.OpenReadWrite(name, c, o...)
	return unsyncedFile{f}, err
}

type unsyncedFile struct{ vfs.File }

func (unsyncedFile) SyncData() error { return nil }

func benchItems(queue string, n int) []PushItem {
	payload := bytes.Repeat([]byte("x"), 1024)
	list := make([]PushItem, n)
	for i := range list {
		list[i] = PushItem{Queue: queue, Partition: "0", Payload: payload}
	}
	return list
}

// BenchmarkPush pushes 1,000 records of 1 KB per call to one partition.
func BenchmarkPush(b *testing.B) {
	for _, c := range []struct {
		name    string
		fs      vfs.FS
		callers int
	}{
		{"disk", vfs.Default, 1}, {"disk-8-callers", vfs.Default, 8}, {"without-sync", unsynced{vfs.Default}, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			broker := open(b, Config{FS: c.fs, Dir: b.TempDir(), SegmentBytes: 64 << 20})
			benchPush(b, broker, c.callers, 1000)
		})
	}
}

// BenchmarkPushRecycled is one caller of BenchmarkPush on disk whose queue is
// deleted every 64 MB, so that the log goes on in files used before.
func BenchmarkPushRecycled(b *testing.B) {
	broker := open(b, Config{FS: vfs.Default, Dir: b.TempDir(), SegmentBytes: 64 << 20})
	list := benchItems("q", 1000)
	step := func(i int) {
		if i%64 == 63 {
			if _, err := broker.Delete(context.Background(), tenantA, "q"); err != nil {
				b.Fatal(err)
			}
		}
		mustPush(b, broker, tenantA, list)
	}
	for i := range 256 {
		step(i)
	}
	b.SetBytes(1000 << 10)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		step(i)
	}
}

// BenchmarkPushOne pushes one record of 1 KB per call.
func BenchmarkPushOne(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d-callers", callers), func(b *testing.B) {
			broker := open(b, Config{FS: vfs.Default, Dir: b.TempDir(), SegmentBytes: 64 << 20})
			benchPush(b, broker, callers, 1)
		})
	}
}

func benchPush(b *testing.B, broker *Broker, callers, n int) {
	list := benchItems("q", n)
	mustPush(b, broker, tenantA, list) // the file exists
	before := broker.store.Syncs()
	b.SetBytes(int64(n) << 10)
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan error, callers)
	for range callers {
		go func() {
			var err error
			for left.Add(-1) >= 0 && err == nil {
				_, err = broker.Push(context.Background(), tenantA, list, nil)
			}
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(broker.store.Syncs()-before)/float64(b.N), "syncs/op")
}

// BenchmarkPushKeyed is one caller of BenchmarkPush without a disk: with no
// keys, with those of an idempotent producer, and with one text per record.
func BenchmarkPushKeyed(b *testing.B) {
	for _, format := range []string{"", "qe:1000:0:0:%d", "0190a1b2-0000-7000-8000-%012d"} {
		b.Run("key-"+format, func(b *testing.B) {
			broker := open(b, Config{FS: unsynced{vfs.Default}, Dir: b.TempDir(), SegmentBytes: 64 << 20})
			list := benchItems("q", 1000)
			mustPush(b, broker, tenantA, list)
			b.SetBytes(1000 << 10)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if format != "" {
					b.StopTimer()
					for j := range list {
						list[j].TransactionID = fmt.Appendf(nil, format, i*len(list)+j)
					}
					b.StartTimer()
				}
				mustPush(b, broker, tenantA, list)
			}
		})
	}
}

// benchCalls runs call b.N times from some callers at once.
func benchCalls(b *testing.B, broker *Broker, callers int, call func(caller, n int) error) {
	before := broker.store.Syncs()
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan error, callers)
	for c := range callers {
		go func() {
			var err error
			for n := left.Add(-1); n >= 0 && err == nil; n = left.Add(-1) {
				err = call(c, int(n))
			}
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(broker.store.Syncs()-before)/float64(b.N), "syncs/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkKVPut puts one committed offset per call.
func BenchmarkKVPut(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d-callers", callers), func(b *testing.B) {
			broker := open(b, Config{FS: vfs.Default, Dir: b.TempDir(), SegmentBytes: 64 << 20})
			benchCalls(b, broker, callers, func(c, n int) error {
				op := put(fmt.Sprintf("qk:group:g:orders:%d", c*16+n%16), `{"offset":9,"metadata":"","ts":1790000000000}`)
				_, err := broker.KV(context.Background(), tenantA, []KVOp{op})
				return err
			})
		})
	}
}

// BenchmarkKVGetMany reads 16 committed offsets per call.
func BenchmarkKVGetMany(b *testing.B) {
	broker := open(b, Config{FS: vfs.Default, Dir: b.TempDir(), SegmentBytes: 64 << 20})
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("qk:group:g:orders:%d", i))
		mustKV(b, broker, put(keys[i], `{"offset":9,"metadata":"","ts":1790000000000}`))
	}
	benchCalls(b, broker, 1, func(_, n int) error {
		_, err := broker.KV(context.Background(), tenantA, []KVOp{getMany(keys[n%900:][:16]...)})
		return err
	})
}

// BenchmarkTransaction commits 10 records of 1 KB, a fence and an offset per
// call.
func BenchmarkTransaction(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d-callers", callers), func(b *testing.B) {
			broker := open(b, Config{FS: vfs.Default, Dir: b.TempDir(), SegmentBytes: 64 << 20})
			list := benchItems("q", 10)
			fences := make([]int64, callers)
			benchCalls(b, broker, callers, func(c, _ int) error {
				r, err := broker.Transaction(context.Background(), tenantA, list, []KVOp{
					put(fmt.Sprintf("qk:txn:tx-%d", c), `{"state":"committed"}`).expecting(fences[c]).must(),
					put(fmt.Sprintf("qk:group:g:orders:%d", c), `{"offset":9,"metadata":"","ts":1790000000000}`),
				})
				if err != nil || !r.Success {
					return fmt.Errorf("%+v, %w", r, err)
				}
				fences[c] = r.KV[0].Version
				return nil
			})
		})
	}
}

// BenchmarkFetch reads 1 MiB (1,024 records) per call from the page cache.
func BenchmarkFetch(b *testing.B) {
	for _, batch := range []int{1000, 1} {
		b.Run(fmt.Sprintf("pushed-by-%d", batch), func(b *testing.B) {
			broker := open(b, Config{FS: unsynced{vfs.Default}, Dir: b.TempDir(), SegmentBytes: 64 << 20})
			const total = 32_000
			for n := 0; n < total; n += batch {
				mustPush(b, broker, tenantA, benchItems("q", batch))
			}
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			before := broker.store.Syncs()
			b.ResetTimer()
			offset := int64(0)
			for range b.N {
				r := fetchOne(b, broker, tenantA, FetchEntry{Queue: "q", Partition: "0", Offset: offset})
				if len(r.Records) != 1024 {
					b.Fatalf("%d records at %d", len(r.Records), offset)
				}
				offset = (offset + 1024) % (total - 1024)
			}
			b.ReportMetric(float64(broker.store.Syncs()-before)/float64(b.N), "syncs/op")
		})
	}
}
