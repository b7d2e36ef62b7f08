package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/edge/txn"
)

const (
	firstOffsetGroups = 8    // version from which a request names several groups
	firstOffsetIDs    = 10   // version from which OffsetFetch and OffsetCommit name topics by id
	maxOffsetGroups   = 1000 // of one request: each costs the cell a call
)

// groups answers a request that names groups. What one of them is refused with
// does not touch the others.
func (r *offsetReading) groups(req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse) {
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, len(req.Groups))
	for i := range req.Groups {
		g, rg := &req.Groups[i], &resp.Groups[i]
		rg.Default()
		rg.Group, rg.Topics = g.Group, []kmsg.OffsetFetchResponseGroupTopic{}
		if i >= maxOffsetGroups {
			rg.ErrorCode = kerr.CoordinatorLoadInProgress.Code
			continue
		}
		a := &groupOffsets{resp: rg, reading: r, byID: req.Version >= firstOffsetIDs}
		a.answer(g, req.RequireStable)
	}
}

// groupOffsets is the answer for one group from version 8 on.
type groupOffsets struct {
	resp    *kmsg.OffsetFetchResponseGroup
	reading *offsetReading
	byID    bool
}

func (a *groupOffsets) answer(g *kmsg.OffsetFetchRequestGroup, stable bool) {
	var pending map[txn.TopicPartition]bool
	if stable { // before the offsets are read: what commits in between must not be missed
		pending = a.reading.h.cfg.Txns.Pending(a.reading.call.Scope, g.Group)
	}
	if g.Topics == nil {
		a.resp.ErrorCode = a.all()
	} else {
		a.resp.ErrorCode = a.named(g.Topics)
	}
	if a.resp.ErrorCode != 0 {
		a.drop()
	}
	a.unstable(pending)
}

func (a *groupOffsets) all() int16 {
	if a.byID { // an answer has an id for every topic
		if err := a.reading.look(); err != nil {
			return a.reading.code(err)
		}
	}
	return a.reading.all(a.resp.Group, a)
}

// named answers named partitions, none of which has an offset at first.
func (a *groupOffsets) named(topics []kmsg.OffsetFetchRequestGroupTopic) int16 {
	if a.byID && len(topics) > 0 {
		if err := a.reading.look(); err != nil {
			return a.reading.code(err)
		}
	}
	none := "" // shared by all partitions: encoded, never changed
	wanted := make([]wantedOffsets, len(topics))
	a.resp.Topics = make([]kmsg.OffsetFetchResponseGroupTopic, len(topics))
	for i := range topics {
		t, rt := &topics[i], &a.resp.Topics[i]
		rt.Default()
		name, code := a.name(t)
		rt.Topic, rt.TopicID = name, t.TopicID // one of the two is on the wire
		wanted[i] = wantedOffsets{topic: name, partitions: t.Partitions}
		rt.Partitions = make([]kmsg.OffsetFetchResponseGroupTopicPartition, len(t.Partitions))
		for j, n := range t.Partitions {
			rp := &rt.Partitions[j]
			rp.Default()
			rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata, rp.ErrorCode = n, -1, noEpoch, &none, code
		}
	}
	return a.reading.named(a.resp.Group, wanted, a)
}

// name is the name of a topic, or the code of its partitions.
func (a *groupOffsets) name(t *kmsg.OffsetFetchRequestGroupTopic) (string, int16) {
	if !a.byID {
		return t.Topic, 0
	}
	found, ok := a.reading.list.FindID(t.TopicID)
	if !ok {
		return "", kerr.UnknownTopicID.Code
	}
	return found.Name, 0
}

func (a *groupOffsets) set(i, j int, o offsets.Stored) {
	rp := &a.resp.Topics[i].Partitions[j]
	rp.Offset, rp.Metadata = o.Offset, &o.Metadata
}

// add leaves out what has no id where topics are named by it.
func (a *groupOffsets) add(p offsets.Place, o offsets.Stored) {
	t := a.topic(p.Topic)
	if t == nil {
		return
	}
	rp := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = p.Partition, o.Offset, noEpoch, &o.Metadata
	t.Partitions = append(t.Partitions, rp)
}

// topic is the last topic of the answer if it has that name, or a new one.
func (a *groupOffsets) topic(name string) *kmsg.OffsetFetchResponseGroupTopic {
	if n := len(a.resp.Topics); n > 0 && a.resp.Topics[n-1].Topic == name {
		return &a.resp.Topics[n-1]
	}
	t := kmsg.NewOffsetFetchResponseGroupTopic()
	t.Topic = name
	if a.byID {
		found, ok := a.reading.list.Find(name)
		if t.TopicID = found.ID; !ok || found.ID == (catalog.TopicID{}) {
			return nil
		}
	}
	a.resp.Topics = append(a.resp.Topics, t)
	return &a.resp.Topics[len(a.resp.Topics)-1]
}

// unstable refuses the partitions that a transaction is about to move.
func (a *groupOffsets) unstable(pending map[txn.TopicPartition]bool) {
	if len(pending) == 0 {
		return
	}
	none := ""
	for i := range a.resp.Topics {
		t := &a.resp.Topics[i]
		for j := range t.Partitions {
			if p := &t.Partitions[j]; pending[txn.TopicPartition{Topic: t.Topic, Index: p.Partition}] {
				p.Offset, p.Metadata, p.ErrorCode = -1, &none, kerr.UnstableOffsetCommit.Code
			}
		}
	}
}

func (a *groupOffsets) drop() { a.resp.Topics = []kmsg.OffsetFetchResponseGroupTopic{} }
