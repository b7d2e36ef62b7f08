package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/queen-mq/queen-edge/tenancy"
)

// TopicID names a topic in place of its name (KIP-516). The zero TopicID is no
// id: a topic that has it is served by name only.
type TopicID [16]byte

// IsZero reports whether there is no id.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// reserved are the ids that Kafka keeps for itself: none, and the one of its
// metadata log.
func (id TopicID) reserved() bool { return id.IsZero() || id == TopicID{15: 1} }

// topicID makes a queue's topic id from what does not change while the queue
// lives and is the same wherever it is asked: the first 128 bits of SHA-256 over
// cluster id and queue id, each behind its length, so that no two pairs make the
// same bytes (B1). A queue without an id has none, and so has every queue of a
// credential that the cell names no cluster for: such a tenant's own id is new in
// every process.
func topicID(s tenancy.Scope, queueID string) TopicID {
	if queueID == "" || !s.Resolved() {
		return TopicID{}
	}
	var b []byte
	for _, part := range []string{s.ID().String(), queueID} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return firstFree(sha256.Sum256(b))
}

// firstFree takes the first half of a sum, or of the sum's own sum where that is
// a reserved id.
func firstFree(sum [sha256.Size]byte) TopicID {
	for {
		if id := TopicID(sum[:16]); !id.reserved() {
			return id
		}
		sum = sha256.Sum256(sum[:])
	}
}

// byID is the order of topics by id, those without one left out.
func byID(topics []Topic) []int32 {
	order := make([]int32, 0, len(topics))
	for i := range topics {
		if !topics[i].ID.IsZero() {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(topics[a].ID[:], topics[b].ID[:]) })
	return order
}

// FindID looks a topic up by its id, among this tenant's topics only.
func (l *Listing) FindID(id TopicID) (Topic, bool) {
	i, ok := slices.BinarySearchFunc(l.ids, id, func(i int32, id TopicID) int {
		return bytes.Compare(l.topics[i].ID[:], id[:])
	})
	if !ok {
		return Topic{}, false
	}
	return l.topics[l.ids[i]], true
}

// ResolveIDs looks ids up, in the given order. One that no topic has is Missing:
// nothing can be created by an id.
func (c *Catalog) ResolveIDs(ctx context.Context, s tenancy.Scope, ids []TopicID) []Resolved {
	if len(ids) == 0 {
		return nil
	}
	out := make([]Resolved, len(ids))
	list, err := c.Get(ctx, s)
	for i, id := range ids {
		r := &out[i]
		r.ByID, r.ID = true, id
		if err != nil {
			r.State, r.Err = Failed, err
			continue
		}
		var ok bool
		if r.Topic, ok = list.FindID(id); !ok {
			r.State = Missing
		}
		r.Name = r.Topic.Name
	}
	return out
}
