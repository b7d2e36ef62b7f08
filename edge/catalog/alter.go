package catalog

import (
	"context"
	"errors"

	"github.com/queen-mq/queen-edge/edge/topicconf"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

var (
	// ErrUntracked is a topic without a record: it was not made through a gateway,
	// so the settings an alter would have to repeat are not known.
	ErrUntracked = errors.New("the topic has no record")
	// ErrGone is a topic that was deleted, or made anew, meanwhile.
	ErrGone = errors.New("the topic was deleted meanwhile")
	// errContended is a record that others kept changing.
	errContended = errors.New("the topic record changed at every attempt")
)

// alterTries bounds how often a change starts again from a record that another
// gateway has changed meanwhile.
const alterTries = 5

// Edit says what a record is to become. ok is false where there is nothing to
// do.
type Edit func(Stored) (next topicconf.Record, ok bool, err error)

// Alter changes a topic's settings: what is recorded with the change goes to
// the cell whole, then the record is written. Each attempt starts from the
// record as it is then, so that of two changes none is lost. A dry run stops
// before the cell is told.
func (c *Catalog) Alter(ctx context.Context, s tenancy.Scope, t Topic, edit Edit, dry bool) error {
	for range alterTries {
		st, err := c.record(ctx, s, t)
		if err != nil {
			return err
		}
		next, ok, err := edit(st)
		if err != nil || !ok || dry {
			return err
		}
		id, err := c.cell.Configure(ctx, s, t.Name, next.Set.Sent(st.Set))
		if err != nil {
			return err
		}
		if id != "" && id != t.QueueID {
			c.Invalidate(s)
			return ErrGone
		}
		_, lost, err := c.put(ctx, s, t.Name, next, proxyclient.ExpectVersion(st.Version))
		if err != nil {
			c.disown(ctx, s, t.Name, st.Record)
			return &Unrecorded{err}
		}
		if !lost {
			return nil
		}
	}
	return errContended
}

// Unable reports a failure after which the cell is not asked for the rest of a
// request: it does not answer, or not now.
func Unable(err error) bool { return unable(err) }
