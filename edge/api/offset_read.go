package api

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// wantedOffsets are the partitions of a topic whose offsets are asked for. No
// topic has the empty name.
type wantedOffsets struct {
	topic      string
	partitions []int32
}

// offsetAnswer is the answer for one group, at whatever version.
type offsetAnswer interface {
	set(i, j int, o offsets.Stored)        // of a named partition, which has none yet
	add(p offsets.Place, o offsets.Stored) // of one that was not named; those of one topic come together
	drop()                                 // everything
}

const (
	// offsetReads is how many partitions are looked up at a time: one call.
	offsetReads = 128
	// offsetPatience bounds the reading of all groups: clients give a request up
	// after 30 s.
	offsetPatience = 25 * time.Second
	// offsetBytes is what a partition that was not named takes, in memory while
	// lists grow and in the answer.
	offsetBytes = 300
)

var (
	errAnswerRoom = errors.New("there is no room for the answer")
	errOversize   = errors.New("the answer would be larger than a response may be")
)

// named answers named partitions of one group; the code is the group's.
func (r *offsetReading) named(group string, wanted []wantedOffsets, a offsetAnswer) int16 {
	if e := refuseGroup(r.call.Scope, group); e != nil {
		return e.Code
	}
	r.group = group
	if err := r.read(wanted, a); err != nil {
		return r.code(err)
	}
	return 0
}

// all answers all partitions of one group that have an offset.
func (r *offsetReading) all(group string, a offsetAnswer) int16 {
	a.drop()
	if e := refuseGroup(r.call.Scope, group); e != nil {
		return e.Code
	}
	err := r.h.cfg.Offsets.Walk(r.ctx, r.call.Scope, group, visibleTopic, func(p offsets.Place, o offsets.Stored) error {
		live, err := r.live(p.Topic, o.QueueID)
		if err != nil || !live {
			return err
		}
		if err := r.take(offsetBytes + len(p.Topic) + len(o.Metadata)); err != nil {
			return err
		}
		a.add(p, o)
		return nil
	})
	if err != nil {
		a.drop()
		return r.code(err)
	}
	return 0
}

// visibleTopic reports a name that clients may see.
func visibleTopic(name string) bool { return catalog.Legal(name) && !catalog.Reserved(name) }

// offsetReading is the reading of a request's groups, one after another.
type offsetReading struct {
	h     *Handlers
	ctx   context.Context
	call  Call
	group string
	bytes int64

	list  *catalog.Listing // nil: not asked for yet
	fresh bool             // it was read for this very request

	places []offsets.Place // of the next call
	at     [][2]int        // where their answers are
}

func (r *offsetReading) read(wanted []wantedOffsets, a offsetAnswer) error {
	r.places, r.at = r.places[:0], r.at[:0]
	for i := range wanted {
		topic := wanted[i].topic
		if !visibleTopic(topic) {
			continue
		}
		for j, n := range wanted[i].partitions {
			if n < 0 || !offsets.Fits(r.group, topic, n) {
				continue
			}
			r.places, r.at = append(r.places, offsets.Place{Topic: topic, Partition: n}), append(r.at, [2]int{i, j})
			if len(r.places) == offsetReads {
				if err := r.flush(a); err != nil {
					return err
				}
			}
		}
	}
	return r.flush(a)
}

// flush looks up the places that were gathered.
func (r *offsetReading) flush(a offsetAnswer) error {
	err := r.h.cfg.Offsets.Read(r.ctx, r.call.Scope, r.group, r.places, func(k int, o offsets.Stored) error {
		live, err := r.live(r.places[k].Topic, o.QueueID)
		if err != nil || !live {
			return err
		}
		if err := r.take(len(o.Metadata)); err != nil {
			return err
		}
		a.set(r.at[k][0], r.at[k][1], o)
		return nil
	})
	r.places, r.at = r.places[:0], r.at[:0]
	return err
}

// live reports whether an offset was committed for the queue that the topic has
// now. Who does not know the queues must not answer: an offset of a queue that is
// gone points anywhere, and "none" for one that is there starts a consumer anew.
func (r *offsetReading) live(topic, queueID string) (bool, error) {
	if queueID == "" {
		return true, nil // older than queue ids, or by somebody who could not know
	}
	if err := r.look(); err != nil {
		return false, err
	}
	if sameQueue(r.list, topic, queueID) {
		return true, nil
	}
	if !r.fresh { // the offset may be newer than the listing
		list, err := r.h.cfg.Catalog.Fresh(r.ctx, r.call.Scope)
		if err != nil {
			return false, err
		}
		r.list, r.fresh = list, true
	}
	return sameQueue(r.list, topic, queueID), nil
}

// look reads the listing, once for a request.
func (r *offsetReading) look() error {
	if r.list != nil {
		return nil
	}
	list, err := r.h.cfg.Catalog.Recent(r.ctx, r.call.Scope)
	if err != nil {
		return err
	}
	r.list = list
	return nil
}

func sameQueue(list *catalog.Listing, topic, queueID string) bool {
	t, ok := list.Find(topic)
	return ok && (t.QueueID == queueID || t.QueueID == "")
}

// take takes memory for a part of the answer, twice: it is encoded beside what
// it is made of.
func (r *offsetReading) take(n int) error {
	r.bytes += int64(n)
	if r.bytes > wire.MaxFrame {
		return errOversize
	}
	if !r.call.Conn.answer.cover(2 * r.bytes) {
		return errAnswerRoom
	}
	return nil
}

// code is a failure in the group's terms. Nothing of what was read is answered.
func (r *offsetReading) code(err error) int16 {
	switch {
	case errors.Is(err, errAnswerRoom):
		return kerr.CoordinatorLoadInProgress.Code
	case errors.Is(err, errOversize):
		r.h.cfg.Log.Warn("the committed offsets of a group are too many for an answer", zap.Stringer("tenant", r.call.Scope.ID()))
	}
	return positionCodes.of(err).code
}
