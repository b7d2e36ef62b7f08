package edge

import (
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/edge/api"
)

// maxQueued is how many received requests may wait behind the one being served.
// Beyond it reading pauses; a client may pipeline as deep as it likes.
const maxQueued = 16

// frame is a received request, or the reason for which the connection ends when
// its turn comes.
type frame struct {
	req  api.Request
	buf  *[]byte
	cost int64 // taken from the in-flight ceiling
	end  error
}

// queue hands received requests from the reader to the worker, in order. The
// worker exists only while there is something to serve, so an idle connection
// has one goroutine.
type queue struct {
	slots chan struct{} // one for each frame in the queue
	bell  chan struct{} // rings when one comes that must not be held; nil: nobody listens

	mu     sync.Mutex // guards the fields below
	frames []frame
	busy   bool      // a worker runs
	dead   bool      // nothing is served any more
	rested time.Time // when the worker last ran out of work
}

func newQueue() *queue { return &queue{slots: make(chan struct{}, maxQueued)} }

// put adds a frame. start says that a worker must be started; ok is false when
// nothing is served any more.
func (q *queue) put(f frame) (start, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead {
		return false, false
	}
	q.frames = append(q.frames, f)
	if f.unheld() {
		select {
		case q.bell <- struct{}{}:
		default: // it has rung, or nobody listens
		}
	}
	start = !q.busy
	q.busy = true
	return start, true
}

// take returns the next run of requests that may share a call, or nil when there
// is none; then the worker is over.
func (q *queue) take(run []frame, most int, now func() time.Time) []frame {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead || len(q.frames) == 0 {
		q.busy = false
		q.rested = now()
		q.frames = nil
		return nil
	}
	n := 1
	for n < len(q.frames) && n < most && q.frames[0].mergeable() && q.frames[n].mergeable() {
		n++
	}
	run = append(run, q.frames[:n]...)
	left := copy(q.frames, q.frames[n:])
	clear(q.frames[left:]) // their buffers are lent to others now
	q.frames = q.frames[:left]
	q.vacate(n)
	return run
}

// waits reports whether there is something to serve.
func (q *queue) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.dead && len(q.frames) > 0
}

// vacate gives back the slots of n frames.
func (q *queue) vacate(n int) {
	for range n {
		<-q.slots
	}
}

// unheld reports whether the frame that is served next must not be held by a
// mute, and whether any in the queue must not. An empty queue holds nobody.
func (q *queue) unheld() (first, any bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead || len(q.frames) == 0 {
		return true, false
	}
	for i := range q.frames {
		if q.frames[i].unheld() {
			return i == 0, true
		}
	}
	return false, false
}

// unheld is a frame that a mute does not hold: one that must not wait, or the end
// of the connection.
func (f *frame) unheld() bool { return f.end != nil || !f.req.Row.Throttled() }

func (f *frame) mergeable() bool { return f.end == nil && f.req.Mergeable() }

// kill stops serving and returns what was not served. A reader that waits for a
// slot gets one, and is told so by put.
func (q *queue) kill() []frame {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead = true
	left := q.frames
	q.frames = nil
	q.vacate(len(left))
	return left
}

// idleSince reports whether nothing is being served, and since when.
func (q *queue) idleSince() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rested, !q.busy
}
