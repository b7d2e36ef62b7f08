package catalog

import (
	"context"

	"github.com/queen-mq/queen-edge/edge/topicconf"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// State is what became of a name.
type State uint8

// States of a Resolved.
const (
	Found   State = iota // Topic holds it
	Illegal              // Kafka cannot express the name
	Missing              // not there, and not to be created; reserved names too
	Failed               // the listing could not be read: Err
	Refused              // creating it failed: Err
	Later                // more missing names than one request creates
)

// Resolved is a name with its topic, or why there is none.
type Resolved struct {
	Name  string // "" for an id that no topic has
	ByID  bool   // ID was asked for in place of the name
	ID    TopicID
	Topic Topic
	Made  bool // by this very look-up
	State State
	Err   error
}

// Resolve looks names up, each once, in the given order, and creates what is
// missing where create says so. Before anything is created the listing is read
// again past the cache, once: creating is an upsert that would reset the
// settings of a queue that is already there (kafka-surface §6.5).
func (c *Catalog) Resolve(ctx context.Context, s tenancy.Scope, names []string, create bool) []Resolved {
	out := make([]Resolved, len(names))
	list, err := c.Get(ctx, s)
	missing := 0
	for i, name := range names {
		out[i] = look(list, err, name)
		if out[i].State == Missing && !Reserved(name) {
			missing++
		}
	}
	if missing == 0 || !create {
		return out
	}
	list, err = c.Fresh(ctx, s)
	created := 0
	var own []Topic // made by this request
	for i := range out {
		r := &out[i]
		if r.State != Missing || Reserved(r.Name) {
			continue
		}
		if *r = look(list, err, r.Name); r.State != Missing {
			continue
		}
		if created++; created > c.cfg.MaxCreates {
			r.State = Later
			continue
		}
		var mine bool
		if r.Topic, mine, r.Err = c.create(ctx, s, r.Name, list.turn); r.Err != nil {
			r.State = Refused
			continue
		}
		if r.State, r.Made = Found, mine; mine {
			own = append(own, r.Topic)
		}
	}
	c.recordMade(ctx, s, own)
	if created > 0 {
		c.Invalidate(s)
	}
	return out
}

func look(list *Listing, err error, name string) Resolved {
	r := Resolved{Name: name}
	switch {
	case !Legal(name):
		r.State = Illegal
	case Reserved(name):
		r.State = Missing
	case err != nil:
		r.State, r.Err = Failed, err
	default:
		var ok bool
		if r.Topic, ok = list.Find(name); !ok {
			r.State = Missing
		}
	}
	return r
}

// made is a topic that was created, or whose creation was refused.
type made struct {
	topic Topic
	turn  uint64             // when it was there, among the catalog's turns
	by    tenancy.Credential // who asked
}

// create makes one topic that a listing begun at turn listed does not have.
// Callers of one name share the call; mine says whether this one made it. A
// refusal is its credential's own: another one then asks for itself.
func (c *Catalog) create(ctx context.Context, s tenancy.Scope, name string, listed uint64) (t Topic, mine bool, err error) {
	key := tenancy.KeyOf(s, name)
	for {
		existed := false
		m, led, err := c.creates.Do(ctx, key, func(ctx context.Context) (made, error) {
			if m, ok := c.made.Get(key); ok && m.turn > listed {
				existed = true // another request made it meanwhile: it has its settings
				return m, nil
			}
			return c.configure(ctx, s, name)
		})
		if err == nil || led || m.by == s.Credential() || ctx.Err() != nil {
			return m.topic, led && !existed, err
		}
	}
}

// configure asks for a queue with this gateway's deduplication window: the one
// of queues made elsewhere is not what resends are reckoned with (B3).
func (c *Catalog) configure(ctx context.Context, s tenancy.Scope, name string) (made, error) {
	m := made{by: s.Credential()}
	id, err := c.cell.Configure(ctx, s, name, topicconf.First(nil, c.cfg.DedupWindow).Sent(nil))
	if err != nil {
		return m, err
	}
	m.topic = c.Made(Spec{Name: name})
	m.topic.QueueID, m.topic.ID = id, topicID(s, id)
	m.turn = c.turn.Add(1)
	c.made.Set(tenancy.KeyOf(s, name), m)
	return m, nil
}

var _ Cell = (*proxyclient.Client)(nil)
