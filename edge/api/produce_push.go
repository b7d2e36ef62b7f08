package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/proxyclient"
)

// Bounds of one merged push (B8). A single request is never cut.
const (
	mergeItems = 10_000
	mergeBytes = 12 << 20
)

// move encodes and pushes the run in units: as many requests as one push may
// carry. A unit is sent once the request behind it turns out not to fit, and its
// memory is what the next but one is encoded into, so a run takes what one push
// takes, however many requests it has.
func (r *produceRun) move(ctx context.Context) {
	lo := 0
	for at := 0; at < len(r.parts); {
		next := r.nextFrame(at)
		r.fill(ctx, at, next)
		if at > lo && !r.share(lo, next) {
			r.send(ctx, lo, at)
			r.body.Drop(r.parts[at].from)
			lo = at
		}
		at = next
	}
	r.send(ctx, lo, len(r.parts))
}

// share reports whether the parts [lo, hi) fit into one push.
func (r *produceRun) share(lo, hi int) bool {
	from, to := r.parts[lo].from, r.parts[hi-1].to
	return to.Items()-from.Items() <= mergeItems && to.Bytes()-from.Bytes() <= mergeBytes
}

// send pushes the requests of the parts [lo, hi).
func (r *produceRun) send(ctx context.Context, lo, hi int) {
	r.recheck(lo, hi)
	r.sendRuns(ctx, lo, hi, byFrame)
}

// grain is what a refused push is cut into next (B8): requests, then topics,
// then partitions, so that no good batch pays for a bad one.
type grain uint8

const (
	byFrame grain = iota
	byTopic
	byPartition
	uncut
)

func (g grain) same(a, b *part) bool {
	switch g {
	case byFrame:
		return a.frame == b.frame
	case byTopic:
		return a.frame == b.frame && a.topic == b.topic
	}
	return false
}

// call pushes the parts [lo, hi) in one call; none of them is held.
// A refusal of the whole call is tried again in smaller pieces.
func (r *produceRun) call(ctx context.Context, lo, hi int, next grain) {
	lo, hi = r.span(lo, hi)
	if lo == hi {
		return
	}
	from, to := r.parts[lo].from, r.parts[hi-1].to
	r.h.Stats.pushes.Add(1)
	results, err := r.h.cfg.Cell.Push(ctx, r.c.scope, r.body, from, to, r.results[:0])
	r.results = results
	if err == nil {
		r.settle(lo, hi, from, results)
		return
	}
	if piecewise(err) && r.pending(lo, hi) > 1 {
		r.sendPieces(ctx, lo, hi, next)
		return
	}
	r.fail(lo, hi, err)
}

// piecewise reports whether a refusal may be one bad batch's doing.
func piecewise(err error) bool {
	e, ok := proxyclient.AsError(err)
	return ok && e.Kind == proxyclient.KindStatus && (e.Status == 400 || e.Status == 403 || e.Status == 413)
}

func (r *produceRun) sendPieces(ctx context.Context, lo, hi int, g grain) {
	for a := lo; a < hi; {
		b := a + 1
		for b < hi && g.same(&r.parts[a], &r.parts[b]) {
			b++
		}
		r.recheck(a, b)
		r.sendRuns(ctx, a, b, min(g+1, uncut))
		a = b
	}
}

// sendRuns sends parts in as few calls as the body allows: a part that was
// answered after its items were encoded lies between its neighbours' items.
func (r *produceRun) sendRuns(ctx context.Context, lo, hi int, next grain) {
	for a := lo; a < hi; {
		b := a
		for b < hi && !r.held(b) {
			b++
		}
		r.call(ctx, a, b, next)
		a = b + 1
	}
}

// held reports whether a part's items are in the body and must stay behind.
func (r *produceRun) held(i int) bool {
	p := &r.parts[i]
	return p.done && p.to.Items() > p.from.Items()
}

// recheck answers parts whose predecessor has failed since they were admitted.
func (r *produceRun) recheck(lo, hi int) {
	for i := lo; i < hi; i++ {
		p := &r.parts[i]
		if !r.goes(i) || !p.admitted {
			continue
		}
		if code := r.c.order.Recheck(p.ticket); code != 0 {
			r.refuse(p, code, "An earlier batch of this producer was not written.")
			r.failed(p, code)
		}
	}
}

// goes reports whether a part has items that were not answered yet.
func (r *produceRun) goes(i int) bool {
	p := &r.parts[i]
	return !p.done && p.to.Items() > p.from.Items()
}

// span cuts parts without items off both ends.
func (r *produceRun) span(lo, hi int) (int, int) {
	for lo < hi && !r.goes(lo) {
		lo++
	}
	for hi > lo && !r.goes(hi-1) {
		hi--
	}
	return lo, hi
}

func (r *produceRun) pending(lo, hi int) int {
	n := 0
	for i := lo; i < hi; i++ {
		if r.goes(i) {
			n++
		}
	}
	return n
}

// nextFrame is the first part of the request after that of part i.
func (r *produceRun) nextFrame(i int) int {
	frame := r.parts[i].frame
	for i < len(r.parts) && r.parts[i].frame == frame {
		i++
	}
	return i
}

// fail answers parts whose call failed. A lost answer leaves their fate open.
func (r *produceRun) fail(lo, hi int, err error) {
	o := produceCodes.of(err)
	text := "The cell did not take the records."
	if o.message != nil {
		text = *o.message
	}
	for i := lo; i < hi; i++ {
		p := &r.parts[i]
		if p.done {
			continue
		}
		r.throttle(p, o.throttle)
		r.refuse(p, o.code, text)
		r.failed(p, o.code)
	}
}

// settle answers parts from the results of their items.
func (r *produceRun) settle(lo, hi int, from proxyclient.Mark, results []proxyclient.PushResult) {
	for i := lo; i < hi; i++ {
		p := &r.parts[i]
		if p.done {
			continue
		}
		own := results[p.from.Items()-from.Items() : p.to.Items()-from.Items()]
		base, code, text := verdict(own, p.sequenced)
		if code != 0 {
			r.refuse(p, code, text)
			r.failed(p, code)
			continue
		}
		p.resp.BaseOffset, p.done = base, true
		if p.admitted {
			r.c.order.Stored(p.ticket, base)
		}
	}
}

// verdict reads one part's results: its base offset, or why it has none. Offsets
// are never guessed: they must be base, base+1, and so on. Records the cell
// already had are stored: with their original offset where it gave one, with −1
// where it did not or where only some were new (B3).
func verdict(own []proxyclient.PushResult, sequenced bool) (base int64, code int16, text string) {
	if len(own) == 0 {
		return -1, 0, ""
	}
	queued, duplicates, contiguous := 0, 0, true
	base = own[0].Offset
	for i, res := range own {
		switch res.Status {
		case proxyclient.PushQueued:
			queued++
		case proxyclient.PushDuplicate:
			duplicates++
		case proxyclient.PushBuffered:
			return -1, kerr.RequestTimedOut.Code, "The cell holds the records in maintenance; they have no offset yet."
		default:
			return -1, kerr.UnknownServerError.Code, "The cell did not store the records."
		}
		contiguous = contiguous && res.Offset >= 0 && res.Offset == base+int64(i)
	}
	switch {
	case contiguous && (queued == 0 || duplicates == 0):
		return base, 0, ""
	case duplicates > 0 && sequenced:
		return -1, 0, ""
	}
	return -1, kerr.UnknownServerError.Code, "The cell gave offsets that do not follow each other."
}
