package api

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/group"
	"github.com/queen-mq/queen-edge/edge/txn"
)

// A filter may have as many items as a frame has room for, and a tenant many
// groups and transactions: what a request costs is the sum of both, not the
// product, which would be minutes.
func TestListFiltersAreReadOnce(t *testing.T) {
	const items, entries, patience = 400_000, 20_000, 5 * time.Second
	texts, ids := slices.Repeat([]string{"x"}, items), make([]int64, items)
	for name, list := range map[string]func() int{
		"groups by state": func() int {
			req := &kmsg.ListGroupsRequest{StatesFilter: append(texts, "stable")}
			groups := make([]group.Listing, entries)
			groups[0].State = group.Stable
			return len(wantedGroups(req, groups))
		},
		"groups by type": func() int {
			req := &kmsg.ListGroupsRequest{TypesFilter: append(texts, "Classic")}
			return len(wantedGroups(req, make([]group.Listing, entries))) - entries + 1
		},
		"transactions by state": func() int {
			req := &kmsg.ListTransactionsRequest{StateFilters: append(texts, "Ongoing")}
			views := make([]txn.View, entries)
			views[0].Phase = txn.Open
			return len(wantedTxns(req, views, time.Time{}))
		},
		"transactions by producer": func() int {
			req := &kmsg.ListTransactionsRequest{ProducerIDFilters: append(ids, 7)}
			views := make([]txn.View, entries)
			for i := range views {
				views[i].Producer.ID = 7 + int64(i)
			}
			return len(wantedTxns(req, views, time.Time{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			if n := list(); n != 1 {
				t.Errorf("%d pass, want 1", n)
			}
			if took := time.Since(began); took > patience {
				t.Errorf("it took %v", took)
			}
		})
	}
}
