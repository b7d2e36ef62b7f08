package catalog

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/topicconf"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

const (
	maxRecordKeys = 128 // records read by one call (kafka-surface §10.5)
	maxRecordOps  = 256 // records written by one call (cell-http §4.7)
)

// errUnread is a record that was neither read nor proved absent.
var errUnread = errors.New("the topic record could not be read")

// Stored is what is kept of a topic.
type Stored struct {
	topicconf.Record
	Version int64 // 0: there is no record
	Err     error // it could not be read
	live    string
	later   bool // it is pending, and not believed any more
}

// Declared reports whether the record speaks of the live topic: pinned to its
// queue, or not yet pinned and young enough.
func (s Stored) Declared() bool {
	if s.Err != nil || s.Version == 0 || s.later {
		return false
	}
	if s.Pending {
		return true
	}
	pinned := ""
	if s.QueueID != nil {
		pinned = *s.QueueID
	}
	return pinned == s.live
}

// Tracked reports whether the topic's settings are known, so that they can be
// altered.
func (s Stored) Tracked() bool { return s.Declared() && !s.Pending && s.Set != nil }

// Records reads what is kept of topics, aligned with them. A failed call marks
// its topics and those after it.
func (c *Catalog) Records(ctx context.Context, s tenancy.Scope, topics []Topic) []Stored {
	out := make([]Stored, len(topics))
	for lo := 0; lo < len(topics); lo += maxRecordKeys {
		hi := min(lo+maxRecordKeys, len(topics))
		if err := c.readRecords(ctx, s, topics[lo:hi], out[lo:hi]); err != nil {
			for i := range out[lo:] {
				out[lo+i] = Stored{Err: err}
			}
			return out
		}
	}
	return out
}

func (c *Catalog) readRecords(ctx context.Context, s tenancy.Scope, topics []Topic, out []Stored) error {
	keys := make([]string, len(topics))
	at := make(map[string]int, len(topics))
	for i, t := range topics {
		keys[i] = recordPrefix + t.Name
		at[keys[i]] = i
		out[i] = Stored{live: t.QueueID, Err: errUnread}
	}
	res, err := c.cell.KV(ctx, s, []proxyclient.KVOp{{Op: proxyclient.KVGetMany, Keys: keys}})
	if err != nil {
		return err
	}
	if len(res) != 1 {
		return errMisaligned
	}
	for _, key := range res[0].Missing {
		if i, ok := at[key]; ok {
			out[i].Err = nil
		}
	}
	for _, row := range res[0].Rows {
		i, ok := at[row.Key]
		if !ok {
			continue
		}
		out[i].Err, out[i].Version = nil, row.Version
		r, ok := topicconf.Decode(row.Value)
		if !ok { // counts as absent, but for what is to be written over it
			out[i].later = true
			continue
		}
		out[i].Record, out[i].later = r, r.Pending && !c.believed(r.At)
	}
	return nil
}

// believed reports whether a pending record written at a time still counts.
func (c *Catalog) believed(at int64) bool {
	age := c.cfg.Clock().UnixMilli() - at
	return age < topicconf.PendingLife.Milliseconds() && age > -topicconf.PendingLife.Milliseconds()
}

// record reads one topic's record.
func (c *Catalog) record(ctx context.Context, s tenancy.Scope, t Topic) (Stored, error) {
	st := c.Records(ctx, s, []Topic{t})[0]
	return st, st.Err
}

// put writes a record; lost is that the condition did not hold.
func (c *Catalog) put(ctx context.Context, s tenancy.Scope, name string, r topicconf.Record, cond proxyclient.Expect) (version int64, lost bool, err error) {
	r.At = c.cfg.Clock().UnixMilli()
	res, err := c.cell.KV(ctx, s, []proxyclient.KVOp{{
		Op: proxyclient.KVPut, Key: recordPrefix + name, Value: r.Encode(), Expect: cond,
	}})
	if err != nil {
		return 0, false, err
	}
	if len(res) != 1 {
		return 0, false, errMisaligned
	}
	return res[0].Version, !res[0].Applied, nil
}

// forget takes a record back, if it still is the one of that version; version 0
// is whatever is there. Nobody waits for it: a record that stays is pinned to
// its queue, or is not believed for long.
func (c *Catalog) forget(ctx context.Context, s tenancy.Scope, name string, version int64) {
	op := proxyclient.KVOp{Op: proxyclient.KVDelete, Key: recordPrefix + name}
	if version > 0 {
		op.Expect = proxyclient.ExpectVersion(version)
	}
	if _, err := c.cell.KV(ctx, s, []proxyclient.KVOp{op}); err != nil {
		c.cfg.Log.Warn("a topic record could not be taken back", zap.Stringer("tenant", s.ID()), zap.Error(err))
	}
}

// disown is for settings that the cell has and that could not be recorded: the
// record must not go on telling the old ones. What it says of the width stays
// true, and is kept where that can be written.
func (c *Catalog) disown(ctx context.Context, s tenancy.Scope, name string, r topicconf.Record) {
	if r.Partitions > 0 {
		r.Set, r.Kafka, r.Pending = nil, nil, false
		if _, _, err := c.put(ctx, s, name, r, proxyclient.Expect{}); err == nil {
			return
		}
	}
	c.forget(ctx, s, name, 0)
}

// recordMade records topics that were made without settings of their own, so
// that they can be altered later. A failure costs only that.
func (c *Catalog) recordMade(ctx context.Context, s tenancy.Scope, topics []Topic) {
	for lo := 0; lo < len(topics); lo += maxRecordOps {
		var ops []proxyclient.KVOp
		for _, t := range topics[lo:min(lo+maxRecordOps, len(topics))] {
			r := topicconf.Record{
				QueueID: idOf(t.QueueID), Set: topicconf.First(nil, c.cfg.DedupWindow), At: c.cfg.Clock().UnixMilli(),
			}
			ops = append(ops, proxyclient.KVOp{Op: proxyclient.KVPut, Key: recordPrefix + t.Name, Value: r.Encode()})
		}
		if _, err := c.cell.KV(ctx, s, ops); err != nil {
			c.cfg.Log.Info("topics were made and could not be recorded: their configs cannot be altered",
				zap.Stringer("tenant", s.ID()), zap.Int("topics", len(ops)), zap.Error(err))
			return
		}
	}
}

func idOf(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}
