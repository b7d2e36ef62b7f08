package offsets

import (
	"context"
	"errors"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Group is a group that has committed.
type Group struct {
	ID           string
	ProtocolType string // "" of a group that never had members, or where nobody said
}

// errEnough ends a walk through the index.
var errEnough = errors.New("enough groups were read")

// Groups reads the index: at most so many groups, and whether there are more.
func (st *Store) Groups(ctx context.Context, s tenancy.Scope, most int) (groups []Group, more bool, err error) {
	err = st.pages(ctx, s, indexPrefix, false, most/maxReads+2, func(rows []proxyclient.KVRow) error {
		for _, row := range rows {
			id, ok := groupOf(row.Key)
			if !ok {
				continue
			}
			if len(groups) == most {
				return errEnough
			}
			groups = append(groups, Group{ID: id, ProtocolType: protocolType(row.Value)})
		}
		return nil
	})
	if errors.Is(err, errEnough) || errors.Is(err, errTooMany) {
		return groups, true, nil
	}
	return groups, false, err
}

// Known says of one group whether it has committed anything, or was listed.
type Known struct {
	Exists       bool
	ProtocolType string
}

// Look looks groups up, at most 128 in one call. A group whose row of the index
// was never written is known by its offsets.
func (st *Store) Look(ctx context.Context, s tenancy.Scope, groups []string) ([]Known, error) {
	out := make([]Known, len(groups))
	for from := 0; from < len(groups); from += maxReads {
		to := min(from+maxReads, len(groups))
		if err := st.look(ctx, s, groups[from:to], out[from:to]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (st *Store) look(ctx context.Context, s tenancy.Scope, groups []string, out []Known) error {
	keys := make([]string, 0, len(groups))
	at := make(map[string]int, len(groups))
	for _, g := range groups {
		if key := IndexKey(g); at[key] == 0 {
			keys = append(keys, key)
			at[key] = len(keys)
		}
	}
	ops := make([]proxyclient.KVOp, 0, 1+len(groups))
	ops = append(ops, proxyclient.KVOp{Op: proxyclient.KVGetMany, Keys: keys})
	for _, g := range groups {
		ops = append(ops, proxyclient.KVOp{Op: proxyclient.KVGetPrefix, Prefix: groupPrefix(g), Limit: 1, KeysOnly: true})
	}
	res, err := st.ask(ctx, s, ops)
	if err != nil {
		return err
	}
	if len(res[0].Unread) > 0 {
		return ErrUnread
	}
	rows := make(map[string]string, len(res[0].Rows))
	for _, row := range res[0].Rows {
		rows[row.Key] = protocolType(row.Value)
	}
	for i, g := range groups {
		pt, listed := rows[IndexKey(g)]
		out[i] = Known{Exists: listed || len(res[1+i].Rows) > 0, ProtocolType: pt}
		if !out[i].Exists && res[1+i].Truncated {
			return ErrUnread
		}
	}
	return nil
}
