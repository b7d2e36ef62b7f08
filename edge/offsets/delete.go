package offsets

import (
	"context"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Delete removes offsets of a group; one that is not there is removed already.
// No commit of the group is under way meanwhile.
func (st *Store) Delete(ctx context.Context, s tenancy.Scope, group string, places []Place) error {
	return st.alone(ctx, s, group, func(ctx context.Context) error {
		for from := 0; from < len(places); from += st.writes() {
			ops := deletes(group, places[from:min(from+st.writes(), len(places))])
			if _, err := st.fenced(ctx, s, group, noGeneration, ops); err != nil {
				return err
			}
		}
		return nil
	})
}

// noGeneration is that of a write that is no member's.
const noGeneration = -1

func deletes(group string, places []Place) []proxyclient.KVOp {
	ops := make([]proxyclient.KVOp, 0, len(places))
	seen := make(map[Place]struct{}, len(places))
	for _, p := range places {
		if _, twice := seen[p]; twice {
			continue // a call may write a key once
		}
		seen[p] = struct{}{}
		ops = append(ops, remove(Key(group, p.Topic, p.Partition)))
	}
	return ops
}

func remove(key string) proxyclient.KVOp { return proxyclient.KVOp{Op: proxyclient.KVDelete, Key: key} }

// DeleteGroup removes all offsets of a group, then its row of the index, so that
// one that failed halfway can be repeated. It reports whether there was anything.
//
// may is asked when no commit of the group is under way: whoever becomes a member
// after it said yes commits after the deletion.
func (st *Store) DeleteGroup(ctx context.Context, s tenancy.Scope, group string, may func() error) (found bool, err error) {
	err = st.alone(ctx, s, group, func(ctx context.Context) error {
		if err := may(); err != nil {
			return err
		}
		st.indexed.Delete(tenancy.KeyOf(s, group)) // the next commit lists it again
		found, err = st.deleteGroup(ctx, s, group)
		return err
	})
	return found, err
}

// deleteGroup reads a page and removes the one before in the same call.
func (st *Store) deleteGroup(ctx context.Context, s tenancy.Scope, group string) (found bool, err error) {
	scan := proxyclient.KVOp{Op: proxyclient.KVGetPrefix, Prefix: groupPrefix(group), Limit: maxReads, KeysOnly: true}
	var gone []proxyclient.KVOp
	for range maxPages {
		res, err := st.fenced(ctx, s, group, noGeneration, append(gone, scan))
		if err != nil {
			return found, err
		}
		page := &res[len(res)-1]
		gone = nil
		for _, row := range page.Rows {
			found = true
			gone = append(gone, remove(row.Key))
		}
		if !page.Truncated {
			return st.deleteIndex(ctx, s, group, gone, found)
		}
		if page.NextAfter <= scan.After {
			return found, ErrUnread
		}
		scan.After = page.NextAfter
	}
	return found, errTooMany
}

func (st *Store) deleteIndex(ctx context.Context, s tenancy.Scope, group string, gone []proxyclient.KVOp, found bool) (bool, error) {
	gone = append(gone, remove(IndexKey(group)))
	if st.cfg.Fence == nil {
		res, err := st.ask(ctx, s, gone)
		if err != nil {
			return found, err
		}
		return found || res[len(res)-1].Applied, nil
	}
	fence := remove(fenceKey(group)) // the group is gone, and so is what kept it
	fence.Required = true
	res, err := st.behind(ctx, s, group, fence, gone)
	if err != nil {
		return found, err
	}
	return found || res[len(res)-1].Applied, nil
}
