package offsets

import (
	"context"
	"errors"
	"strings"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// errTooMany is a group with more offsets than are ever read.
var errTooMany = errors.New("the group has more committed offsets than can be listed")

// Read looks places up and calls found for those that have an offset, by their
// index. What it does not call found for has none: anything else is an error. It
// asks for at most 128 places in one call.
func (st *Store) Read(ctx context.Context, s tenancy.Scope, group string, places []Place, found func(i int, o Stored) error) error {
	for from := 0; from < len(places); from += maxReads {
		to := min(from+maxReads, len(places))
		err := st.read(ctx, s, group, places[from:to], func(i int, o Stored) error { return found(from+i, o) })
		if err != nil {
			return err
		}
	}
	return nil
}

// read is Read for one call's places. A call has a budget of bytes, so what it
// left out is asked for again while that gets on.
func (st *Store) read(ctx context.Context, s tenancy.Scope, group string, places []Place, found func(i int, o Stored) error) error {
	at := make(map[string][]int, len(places)) // a place may be there twice
	keys := make([]string, 0, len(places))
	for i, p := range places {
		key := Key(group, p.Topic, p.Partition)
		if at[key] == nil {
			keys = append(keys, key)
		}
		at[key] = append(at[key], i)
	}
	for len(keys) > 0 {
		res, err := st.ask(ctx, s, []proxyclient.KVOp{{Op: proxyclient.KVGetMany, Keys: keys}})
		if err != nil {
			return err
		}
		for _, row := range res[0].Rows {
			o, err := decode(row.Value)
			if err != nil {
				return err
			}
			for _, i := range at[row.Key] {
				if err := found(i, o); err != nil {
					return err
				}
			}
		}
		if len(res[0].Unread) >= len(keys) {
			return ErrUnread
		}
		keys = res[0].Unread
	}
	return nil
}

// Walk calls visit for every offset of a group, those of a topic one after the
// other. visible says which topics there are for clients.
func (st *Store) Walk(ctx context.Context, s tenancy.Scope, group string, visible func(topic string) bool, visit func(p Place, o Stored) error) error {
	prefix := groupPrefix(group)
	return st.pages(ctx, s, prefix, false, maxPages, func(rows []proxyclient.KVRow) error {
		for _, row := range rows {
			p, ok := placeOf(strings.TrimPrefix(row.Key, prefix))
			if !ok || !visible(p.Topic) {
				continue
			}
			o, err := decode(row.Value)
			if err != nil {
				return err
			}
			if err := visit(p, o); err != nil {
				return err
			}
		}
		return nil
	})
}

// pages reads the rows of a prefix, 128 in a call.
func (st *Store) pages(ctx context.Context, s tenancy.Scope, prefix string, keysOnly bool, most int, page func(rows []proxyclient.KVRow) error) error {
	after := ""
	for range most {
		res, err := st.ask(ctx, s, []proxyclient.KVOp{{
			Op: proxyclient.KVGetPrefix, Prefix: prefix, Limit: maxReads, After: after, KeysOnly: keysOnly,
		}})
		if err != nil {
			return err
		}
		if err := page(res[0].Rows); err != nil {
			return err
		}
		if !res[0].Truncated {
			return nil
		}
		if res[0].NextAfter <= after {
			return ErrUnread // it would not get on
		}
		after = res[0].NextAfter
	}
	return errTooMany
}
