package catalog

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/topicconf"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// ErrExists is a topic that is there already; nothing of it was changed.
var ErrExists = errors.New("the topic exists")

// Unrecorded is a change that the cell has made and that could not be recorded.
type Unrecorded struct{ Err error }

func (u *Unrecorded) Error() string {
	return "the cell's settings could not be recorded: " + u.Err.Error()
}

// Unwrap gives the failure of the record's call.
func (u *Unrecorded) Unwrap() error { return u.Err }

// Spec is a topic to make.
type Spec struct {
	Name       string
	Partitions int32 // declared width; 0: the default, undeclared
	Values     topicconf.Values
}

// recorded reports whether the spec says something that only a record can keep.
func (p Spec) recorded() bool { return p.Partitions > 0 || len(p.Values) > 0 }

// Made is the topic of a spec, as listings will show it.
func (c *Catalog) Made(p Spec) Topic {
	floor := c.cfg.DefaultPartitions
	if p.Partitions > 0 {
		floor = p.Partitions
	}
	return Topic{Name: p.Name, Width: c.width(0, floor), Window: int64(c.cfg.DedupWindow)}
}

// Create makes a topic that list, which the caller has read past the cache, does
// not have. One that another request makes meanwhile is ErrExists, since making
// it again would reset its settings. The caller invalidates the listing.
func (c *Catalog) Create(ctx context.Context, s tenancy.Scope, p Spec, list *Listing) (Topic, error) {
	key := tenancy.KeyOf(s, p.Name)
	for {
		existed := false
		m, led, err := c.creates.Do(ctx, key, func(ctx context.Context) (made, error) {
			if m, ok := c.made.Get(key); ok && m.turn > list.turn {
				existed = true
				return m, nil
			}
			return c.build(ctx, s, p)
		})
		if err == nil && (!led || existed) {
			return Topic{}, ErrExists
		}
		if err == nil || led || m.by == s.Credential() || ctx.Err() != nil {
			return m.topic, err
		}
	}
}

// build makes queue and record. What only a record can keep is written before
// the queue is there, so that nobody ever sees the topic with another width, and
// a credential that may not write records makes no queue.
func (c *Catalog) build(ctx context.Context, s tenancy.Scope, p Spec) (made, error) {
	m := made{by: s.Credential()}
	r := topicconf.Record{
		Set: topicconf.First(p.Values, c.cfg.DedupWindow), Partitions: int64(p.Partitions), Kafka: p.Values, Pending: true,
	}
	var version int64
	recordable := true
	if p.recorded() {
		var err error
		version, _, err = c.put(ctx, s, p.Name, r, proxyclient.Expect{})
		if recordable = !keepsNone(err); err != nil && recordable {
			return m, err
		}
	}
	id, err := c.cell.Configure(ctx, s, p.Name, r.Set.Sent(nil))
	if err == nil && id == "" {
		id, err = c.idOf(ctx, s, p.Name)
	}
	if err != nil {
		if version > 0 {
			c.forget(ctx, s, p.Name, version)
		}
		return m, err
	}
	m.topic = c.Made(p)
	m.topic.QueueID, m.topic.ID = id, topicID(s, id)
	m.turn = c.turn.Add(1)
	c.made.Set(tenancy.KeyOf(s, p.Name), m)
	if !recordable {
		m.topic.Width = c.width(0, c.cfg.DefaultPartitions)
		return m, nil
	}
	r.QueueID, r.Pending = idOf(id), false
	_, _, err = c.put(ctx, s, p.Name, r, proxyclient.Expect{})
	if err != nil && p.recorded() {
		c.disown(ctx, s, p.Name, r)
		return m, &Unrecorded{err}
	}
	if err != nil {
		c.cfg.Log.Info("a topic was made and could not be recorded: its configs cannot be altered",
			zap.Stringer("tenant", s.ID()), zap.Error(err))
	}
	return m, nil
}

// idOf finds the id of a queue that was made by a cell that did not tell it.
func (c *Catalog) idOf(ctx context.Context, s tenancy.Scope, name string) (string, error) {
	queues, err := c.cell.ListQueues(ctx, s)
	for _, q := range queues {
		if q.Name == name {
			return q.ID, err
		}
	}
	return "", err
}

// keepsNone reports a cell without keys: it has no topic records at all.
func keepsNone(err error) bool {
	e, ok := proxyclient.AsError(err)
	return ok && e.Kind == proxyclient.KindStatus && e.Status == 404
}

// Drop deletes topics by name, one call each, until a call finds the cell
// unable: those after it get its error without a call. Their records go as well,
// each only if it is still the one that was there before. The outcome is aligned
// with names; the listing is read anew afterwards, whatever came of it.
func (c *Catalog) Drop(ctx context.Context, s tenancy.Scope, names []string) []Dropped {
	topics := make([]Topic, len(names))
	for i, name := range names {
		topics[i] = Topic{Name: name}
	}
	records := c.Records(ctx, s, topics)
	out := make([]Dropped, len(names))
	var gone []proxyclient.KVOp
	for i, name := range names {
		if i > 0 && unable(out[i-1].Err) {
			out[i].Err = out[i-1].Err
			continue
		}
		out[i].Existed, out[i].Err = c.cell.DeleteQueue(ctx, s, name)
		c.made.Delete(tenancy.KeyOf(s, name))
		if out[i].Existed && records[i].Version > 0 {
			gone = append(gone, proxyclient.KVOp{
				Op: proxyclient.KVDelete, Key: recordPrefix + name, Expect: proxyclient.ExpectVersion(records[i].Version),
			})
		}
	}
	if len(names) > 0 {
		c.Invalidate(s)
	}
	for lo := 0; lo < len(gone); lo += maxRecordOps {
		if _, err := c.cell.KV(ctx, s, gone[lo:min(lo+maxRecordOps, len(gone))]); err != nil {
			c.cfg.Log.Info("records of deleted topics stay; they are pinned to queues that are gone",
				zap.Stringer("tenant", s.ID()), zap.Error(err))
			break
		}
	}
	return out
}

// Dropped is what became of one deletion.
type Dropped struct {
	Existed bool
	Err     error
}

// unable reports a cell that does not answer, or not now: asking it for the rest
// of a request would only take its time.
func unable(err error) bool {
	e, ok := proxyclient.AsError(err)
	if !ok {
		return err != nil
	}
	return e.Kind == proxyclient.KindTransport || e.Kind == proxyclient.KindStatus && e.Status == 429
}
