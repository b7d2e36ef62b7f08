package broker

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// kvView reads rows as of one moment: the index, and over it the writes that
// are planned and not applied (there are none of those for a caller that only
// reads).
type kvView struct {
	store  *store.Store
	tenant Tenant
	it     *pebble.Iterator    // over the tenant's rows; nil until needed
	over   [2]map[string]kvRow // the call's own writes, then those of calls before it
}

// open pins the moment.
func (v *kvView) open() error {
	if v.it != nil {
		return nil
	}
	from := append([]byte{kvRows}, v.tenant[:]...)
	to := after(from)
	var err error
	v.it, err = v.store.Rows(from, to)
	return err
}

func (v *kvView) close(err *error) {
	if v.it != nil {
		*err = errors.Join(*err, v.it.Close())
	}
}

// get gives a row, live or not; version 0 when there is none. The value is
// never changed by anyone.
func (v *kvView) get(key []byte) (kvRow, error) {
	if r, ok := v.overlaid(key); ok {
		return r, nil
	}
	if v.it == nil {
		b, err := v.store.Get(key)
		if err != nil || b == nil {
			return kvRow{}, err
		}
		return decodeKVRow(b)
	}
	if !v.it.SeekGE(key) || !bytes.Equal(v.it.Key(), key) {
		return kvRow{}, v.it.Error()
	}
	return v.row()
}

// row copies the row the iterator is at.
func (v *kvView) row() (kvRow, error) { return decodeKVRow(slices.Clone(v.it.Value())) }

// scan visits the rows with a prefix from an index key on, live or not, until
// visit says no. The key is valid during visit.
func (v *kvView) scan(prefix, from []byte, visit func(key []byte, r kvRow) bool) error {
	if err := v.open(); err != nil {
		return err
	}
	planned := v.planned(prefix, from)
	ok := v.it.SeekGE(from)
	for {
		inIndex := ok && bytes.HasPrefix(v.it.Key(), prefix)
		switch {
		case len(planned) > 0 && (!inIndex || planned[0] <= string(v.it.Key())):
			key := []byte(planned[0])
			planned = planned[1:]
			if inIndex && bytes.Equal(key, v.it.Key()) {
				ok = v.it.Next()
			}
			if r, _ := v.overlaid(key); !visit(key, r) {
				return nil
			}
		case inIndex:
			r, err := v.row()
			if err != nil || !visit(v.it.Key(), r) {
				return err
			}
			ok = v.it.Next()
		default:
			return v.it.Error()
		}
	}
}

// overlaid is what is planned for a key.
func (v *kvView) overlaid(key []byte) (kvRow, bool) {
	for _, over := range v.over {
		if r, ok := over[string(key)]; ok {
			return r, true
		}
	}
	return kvRow{}, false
}

// planned lists the keys of the maps that a scan passes, in order.
func (v *kvView) planned(prefix, from []byte) []string {
	var keys []string
	for _, over := range v.over {
		for key := range over {
			if len(key) >= len(prefix) && key[:len(prefix)] == string(prefix) && key >= string(from) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
