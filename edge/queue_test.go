package edge

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/edge/api"
)

func asked(correlation int32, key int16) frame {
	f := frame{req: api.Request{Row: &api.Row{Key: key}}}
	f.req.CorrelationID = correlation
	return f
}

// ask puts a frame as the reader does.
func ask(q *queue, f frame) (start, ok bool) {
	q.slots <- struct{}{}
	return q.put(f)
}

func ids(run []frame) []int32 {
	var ids []int32
	for i := range run {
		ids = append(ids, run[i].req.CorrelationID)
	}
	return ids
}

func same(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

const (
	produce = 0
	fetch   = 1
)

// Produce requests that wait behind each other share a run; any other request,
// and one that ends the connection, stands alone. Their order never changes.
func TestQueueRuns(t *testing.T) {
	q := newQueue()
	frames := []frame{
		asked(1, produce), asked(2, produce), asked(3, produce), asked(4, fetch), asked(5, fetch), asked(6, produce), asked(7, produce),
		{end: errors.New("bad frame")},
		asked(9, produce),
	}
	for i, f := range frames {
		if start, ok := ask(q, f); !ok || start != (i == 0) {
			t.Fatalf("frame %d: start %v, ok %v", i, start, ok)
		}
	}
	var run []frame
	for _, want := range [][]int32{{1, 2}, {3}, {4}, {5}, {6, 7}, {0}, {9}} {
		if run = q.take(run[:0], 2, time.Now); !same(ids(run), want) {
			t.Fatalf("run %v, want %v", ids(run), want)
		}
	}
	if _, idle := q.idleSince(); idle || len(q.slots) != 0 {
		t.Errorf("idle %v with a worker, %d slots taken", idle, len(q.slots))
	}
	if run = q.take(run[:0], 2, func() time.Time { return time.Unix(5, 0) }); run != nil {
		t.Errorf("a run of nothing: %v", run)
	}
	if since, idle := q.idleSince(); !idle || !since.Equal(time.Unix(5, 0)) {
		t.Errorf("idle %v since %v", idle, since)
	}
	if start, ok := ask(q, asked(10, fetch)); !start || !ok {
		t.Error("no worker for the next request")
	}
}

func TestQueueRunsOfOneWithoutCoalescing(t *testing.T) {
	for _, most := range []int{0, 1} {
		q := newQueue()
		ask(q, asked(1, produce))
		ask(q, asked(2, produce))
		if run := q.take(nil, most, time.Now); !same(ids(run), []int32{1}) {
			t.Errorf("at most %d: %v", most, ids(run))
		}
	}
}

func TestQueueKill(t *testing.T) {
	q := newQueue()
	for i := range int32(maxQueued) {
		ask(q, asked(i, fetch))
	}
	q.take(nil, 1, time.Now)
	if left := q.kill(); len(left) != maxQueued-1 || left[0].req.CorrelationID != 1 {
		t.Errorf("%d frames left", len(left))
	}
	if _, ok := ask(q, asked(99, fetch)); ok {
		t.Error("a dead queue takes a frame")
	}
	if left := q.kill(); len(left) != 0 {
		t.Errorf("%d frames left twice", len(left))
	}
	if run := q.take(nil, 1, time.Now); run != nil {
		t.Error("a dead queue serves")
	}
}

// A reader that waits for a slot while the worker gives up must not wait for
// ever: nobody would take from the queue again.
func TestQueueKillFreesTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		for i := range int32(maxQueued) {
			ask(q, asked(i, fetch))
		}
		told := make(chan bool, 1)
		go func() {
			_, ok := ask(q, asked(99, fetch))
			told <- ok
		}()
		synctest.Wait()
		if len(told) != 0 {
			t.Fatal("more frames than slots")
		}
		q.kill()
		synctest.Wait()
		select {
		case ok := <-told:
			if ok {
				t.Error("a dead queue took the frame")
			}
		default:
			t.Fatal("the reader still waits")
		}
	})
}

// One reader, workers that come and go: every frame is served once, in order.
func TestQueueUnderLoad(t *testing.T) {
	q := newQueue()
	const frames = 5000
	var served []int32 // one worker at a time: not guarded, so that -race sees two
	var workers sync.WaitGroup
	work := func() {
		defer workers.Done()
		var run []frame
		for {
			if run = q.take(run[:0], 5, time.Now); len(run) == 0 {
				return
			}
			served = append(served, ids(run)...)
		}
	}
	for i := range int32(frames) {
		start, ok := ask(q, asked(i, int16(i%3)))
		if !ok {
			t.Fatal("refused")
		}
		if start {
			workers.Add(1)
			go work()
		}
	}
	workers.Wait()
	if len(served) != frames {
		t.Fatalf("%d served", len(served))
	}
	for i, id := range served {
		if id != int32(i) {
			t.Fatalf("frame %d served as number %d", id, i)
		}
	}
	if _, idle := q.idleSince(); !idle || len(q.slots) != 0 {
		t.Errorf("idle %v, %d slots taken", idle, len(q.slots))
	}
}
