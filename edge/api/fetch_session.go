package api

import (
	"crypto/rand"
	"encoding/binary"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/session"
)

const (
	// firstSessions is the version from which a Fetch may have a session.
	firstSessions = 7
	// maxConnSessions is how many sessions one connection may have. Clients have
	// one; a new one beyond these ends the oldest.
	maxConnSessions = 8
)

// SessionID makes the random id of a session, above 0.
func SessionID() int32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never errs (crypto/rand)
	return int32(binary.BigEndian.Uint32(b[:]) >> 1)
}

// goesOn reports whether a request goes on with a session. All others ask for
// everything, whatever session they end with that (KIP-227).
func goesOn(req *kmsg.FetchRequest) bool {
	return req.SessionEpoch != session.New && req.SessionEpoch != session.None
}

// session finds one of the connection's sessions.
func (c *Conn) session(id int32) *session.Session {
	for _, s := range c.fetches {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// endSession ends one of the connection's own sessions; an id that it does not
// have ends nothing.
func (h *Handlers) endSession(c *Conn, id int32) {
	if s := c.session(id); s != nil {
		h.cfg.Sessions.Drop(s)
		c.fetches = slices.DeleteFunc(c.fetches, func(o *session.Session) bool { return o == s })
	}
}

// resume takes the session that a request goes on with, in use, as the request
// leaves it. Nil comes with a code, or with none where nothing is left of it.
func (h *Handlers) resume(c *Conn, req *kmsg.FetchRequest) (*session.Session, *kerr.Error) {
	s := c.session(req.SessionID)
	if s == nil {
		return nil, kerr.FetchSessionIDNotFound
	}
	if !h.cfg.Sessions.Use(s) {
		h.endSession(c, s.ID)
		return nil, kerr.FetchSessionIDNotFound
	}
	var refusal *kerr.Error
	switch {
	case s.Epoch() != req.SessionEpoch:
		refusal = kerr.InvalidFetchSessionEpoch
	case s.ByID != (req.Version >= firstFetchIDs):
		refusal = kerr.FetchSessionTopicIDError
	case !s.Update(wantsOf(req), forgottenOf(req)):
		h.endSession(c, s.ID)
		return nil, kerr.FetchSessionIDNotFound
	case s.Len() == 0:
		h.endSession(c, s.ID)
		return nil, nil
	default:
		return s, nil
	}
	h.cfg.Sessions.Done(s)
	return nil, refusal
}

// open makes a session of a request that asked for everything, where there is
// room for one, and of its answer.
func (h *Handlers) open(c *Conn, req *kmsg.FetchRequest, resp *kmsg.FetchResponse) {
	if len(c.fetches) >= maxConnSessions {
		h.endSession(c, c.fetches[0].ID)
	}
	told := make([]session.Told, 0, 16)
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			told = append(told, toldOf(&resp.Topics[i].Partitions[j]))
		}
	}
	s := h.cfg.Sessions.Open(c.scope, req.Version >= firstFetchIDs, wantsOf(req),
		func(i int) session.Told { return told[i] }, func(id int32) bool { return c.session(id) != nil })
	if s == nil {
		return
	}
	resp.SessionID = s.ID
	c.fetches = append(c.fetches, s)
	h.cfg.Sessions.Done(s)
}

func toldOf(p *kmsg.FetchResponseTopicPartition) session.Told {
	return session.Told{High: p.HighWatermark, Start: p.LogStartOffset, Code: p.ErrorCode, Records: len(p.RecordBatches) > 0}
}

// placeOf names a partition by what its version names topics by.
func placeOf(req *kmsg.FetchRequest, topic string, id [16]byte, partition int32) session.Place {
	if req.Version >= firstFetchIDs {
		topic = ""
	}
	return session.Place{Topic: topic, ID: id, Partition: partition}
}

func wantsOf(req *kmsg.FetchRequest) []session.Want {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	wants := make([]session.Want, 0, n)
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			wants = append(wants, session.Want{
				Place:  placeOf(req, t.Topic, t.TopicID, p.Partition),
				Offset: p.FetchOffset, MaxBytes: p.PartitionMaxBytes,
			})
		}
	}
	return wants
}

func forgottenOf(req *kmsg.FetchRequest) (places []session.Place) {
	for i := range req.ForgottenTopics {
		t := &req.ForgottenTopics[i]
		for _, p := range t.Partitions {
			places = append(places, placeOf(req, t.Topic, t.TopicID, p))
		}
	}
	return places
}

// everything makes a request that goes on with a session one that asks for all
// its partitions; neighbours of one topic share its entry.
func everything(s *session.Session, req *kmsg.FetchRequest) {
	req.Topics = nil
	parts := make([]kmsg.FetchRequestTopicPartition, 0, s.Len()) // of all topics
	s.Each(func(w *session.Want) {
		n := len(req.Topics)
		if n == 0 || req.Topics[n-1].Topic != w.Topic || req.Topics[n-1].TopicID != w.ID {
			req.Topics = append(req.Topics, kmsg.FetchRequestTopic{Topic: w.Topic, TopicID: w.ID})
			parts = parts[len(parts):]
		}
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = w.Partition, w.Offset, w.MaxBytes
		parts = append(parts, p)
		req.Topics[len(req.Topics)-1].Partitions = parts
	})
}

// onlyChanges leaves of an answer what the client does not know yet.
func onlyChanges(s *session.Session, resp *kmsg.FetchResponse) {
	at, topics := 0, resp.Topics[:0]
	for _, t := range resp.Topics {
		kept := t.Partitions[:0]
		for j := range t.Partitions {
			if s.Changed(at, toldOf(&t.Partitions[j])) {
				kept = append(kept, t.Partitions[j])
			}
			at++
		}
		if t.Partitions = kept; len(kept) > 0 {
			topics = append(topics, t)
		}
	}
	resp.Topics = topics
	s.Rotate()
}
