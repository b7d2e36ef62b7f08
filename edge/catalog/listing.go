package catalog

import (
	"cmp"
	"slices"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Topic is one topic as clients see it.
type Topic struct {
	Name    string
	QueueID string // opaque; changes when the topic is recreated
	ID      TopicID
	Width   int32 // partitions 0 … Width−1 exist for clients
	Window  int64 // s for which the log knows a resend; 0: it does not
}

// Listing is a tenant's topics at one moment: sorted by name, never changed.
type Listing struct {
	topics []Topic
	ids    []int32 // of topics, by topic id
	turn   uint64  // when its call began, among the catalog's turns; 0: at a login
}

// listing makes a Listing of what a cell has listed.
func (c *Catalog) listing(s tenancy.Scope, queues []proxyclient.Queue, declared widths, turn uint64) *Listing {
	topics := c.topicsOf(s, queues, declared)
	return &Listing{topics: topics, ids: byID(topics), turn: turn}
}

// Topics are all topics, by name. The slice must not be changed.
func (l *Listing) Topics() []Topic { return l.topics }

// Find looks a topic up.
func (l *Listing) Find(name string) (Topic, bool) {
	i, ok := slices.BinarySearchFunc(l.topics, name, func(t Topic, name string) int {
		return cmp.Compare(t.Name, name)
	})
	if !ok {
		return Topic{}, false
	}
	return l.topics[i], true
}

// topicsOf keeps the queues that Kafka can name and gives each its width:
// max(live partitions, declared floor or the default), within the maximum.
func (c *Catalog) topicsOf(s tenancy.Scope, queues []proxyclient.Queue, declared widths) []Topic {
	topics, now := make([]Topic, 0, len(queues)), c.cfg.Clock()
	for _, q := range queues {
		if !Legal(q.Name) || Reserved(q.Name) {
			continue
		}
		floor := c.cfg.DefaultPartitions
		w, _ := declared.of(q.Name, q.ID, now)
		if w.n > 0 {
			floor = w.n
		}
		topics = append(topics, Topic{
			Name: q.Name, QueueID: q.ID, ID: topicID(s, q.ID), Width: c.width(q.Partitions, floor), Window: w.window,
		})
	}
	slices.SortFunc(topics, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	return topics
}

func (c *Catalog) width(live int, floor int32) int32 {
	return int32(min(max(int64(live), int64(floor), 1), int64(c.cfg.MaxPartitions)))
}
