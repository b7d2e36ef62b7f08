package main

import (
	"crypto/sha256"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Each side gives topics ids of its own. Scripts speak of names: a request gets
// the side's ids at the versions that want them, and an answer gets the names
// back.

// topicIDs are a side's ids by name, as a connection has learned them.
type topicIDs struct {
	ids   map[string][16]byte
	names map[[16]byte]string
}

// identify puts ids into a request that names topics by them at its version. One
// that has ids in place of names is the script's, for both sides: it is copied.
func (c *conn) identify(req kmsg.Request) kmsg.Request {
	switch req := req.(type) {
	case *kmsg.ProduceRequest:
		for i := range req.Topics {
			if t := &req.Topics[i]; req.Version >= 13 {
				t.TopicID = c.topicID(t.Topic)
			}
		}
	case *kmsg.FetchRequest:
		for i := range req.Topics {
			if t := &req.Topics[i]; req.Version >= 13 {
				t.TopicID = c.topicID(t.Topic)
			}
		}
		for i := range req.ForgottenTopics {
			if t := &req.ForgottenTopics[i]; req.Version >= 13 {
				t.TopicID = c.topicID(t.Topic)
			}
		}
	case *kmsg.OffsetCommitRequest:
		for i := range req.Topics {
			if t := &req.Topics[i]; req.Version >= 10 {
				t.TopicID = c.topicID(t.Topic)
			}
		}
	case *kmsg.OffsetFetchRequest:
		for i := range req.Groups {
			for j := range req.Groups[i].Topics {
				if t := &req.Groups[i].Topics[j]; req.Version >= 10 {
					t.TopicID = c.topicID(t.Topic)
				}
			}
		}
	case *kmsg.MetadataRequest:
		own := *req
		own.Topics = slices.Clone(req.Topics)
		for i := range own.Topics {
			if t := &own.Topics[i]; t.TopicID != [16]byte{} {
				t.TopicID = c.topicID(idWord(t.TopicID))
			}
		}
		return &own
	}
	return req
}

// wordID stands for the id of a topic in a script; each side puts its own in its
// place. A name has 16 bytes at most there.
func wordID(name string) (id [16]byte) {
	copy(id[:], name)
	return id
}

func idWord(id [16]byte) string {
	n := len(id)
	for n > 0 && id[n-1] == 0 {
		n--
	}
	return string(id[:n])
}

// topicID is a topic's id at this side. One that is not there has an id that no
// topic has.
func (c *conn) topicID(name string) [16]byte {
	if id, ok := c.known.ids[name]; ok {
		return id
	}
	req := metadataOf(false, name)
	req.Version = 12
	next := c.next // scripts by hand count what they send
	r := c.exchange(step{req: req})
	c.next = next
	sum := sha256.Sum256([]byte("no topic: " + name))
	id := [16]byte(sum[:16])
	if resp, ok := r.resp.(*kmsg.MetadataResponse); ok && len(resp.Topics) == 1 && resp.Topics[0].TopicID != [16]byte{} {
		id = resp.Topics[0].TopicID
	}
	if c.known.ids == nil {
		c.known = topicIDs{ids: map[string][16]byte{}, names: map[[16]byte]string{}}
	}
	c.known.ids[name], c.known.names[id] = id, name
	return id
}

// name puts names into an answer in place of the ids this connection asked by.
func (c *conn) name(resp kmsg.Response) {
	switch resp := resp.(type) {
	case *kmsg.ProduceResponse:
		for i := range resp.Topics {
			if t := &resp.Topics[i]; resp.Version >= 13 {
				t.Topic, t.TopicID = c.named(t.TopicID)
			}
		}
	case *kmsg.FetchResponse:
		for i := range resp.Topics {
			if t := &resp.Topics[i]; resp.Version >= 13 {
				t.Topic, t.TopicID = c.named(t.TopicID)
			}
		}
	case *kmsg.OffsetCommitResponse:
		for i := range resp.Topics {
			if t := &resp.Topics[i]; resp.Version >= 10 {
				t.Topic, t.TopicID = c.named(t.TopicID)
			}
		}
	case *kmsg.OffsetFetchResponse:
		for i := range resp.Groups {
			for j := range resp.Groups[i].Topics {
				if t := &resp.Groups[i].Topics[j]; resp.Version >= 10 {
					t.Topic, t.TopicID = c.named(t.TopicID)
				}
			}
		}
	case *kmsg.MetadataResponse:
		for i := range resp.Topics {
			t := &resp.Topics[i]
			if name, _ := c.named(t.TopicID); name != "" && (t.Topic == nil || *t.Topic == name) {
				t.TopicID = wordID(name)
			}
		}
	}
}

// named is the name of an id, and what is left to compare: an id that nobody
// asked by.
func (c *conn) named(id [16]byte) (string, [16]byte) {
	if name, ok := c.known.names[id]; ok {
		return name, [16]byte{}
	}
	return "", id
}
