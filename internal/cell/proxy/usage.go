package proxy

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// OpClass is what a metering row counts (cell-http §5.6).
type OpClass string

// The classes.
const (
	OpPush      OpClass = "push"
	OpDelivery  OpClass = "delivery"
	OpTxn       OpClass = "txn"
	OpConfigure OpClass = "configure"
	OpRead      OpClass = "read"
)

// UsageRow is one metering row, or a part of one: rows of one cluster, minute
// and class are added up.
type UsageRow struct {
	Cluster  string    `json:"cluster_id"`
	Minute   time.Time `json:"minute"` // UTC
	Class    OpClass   `json:"op_class"`
	Msgs     int64     `json:"msgs"`
	Reqs     int64     `json:"reqs"`
	BytesIn  int64     `json:"bytes_in"`
	BytesOut int64     `json:"bytes_out"`
}

// add adds another row's counts.
func (r *UsageRow) add(o *UsageRow) {
	r.Msgs += o.Msgs
	r.Reqs += o.Reqs
	r.BytesIn += o.BytesIn
	r.BytesOut += o.BytesOut
}

// UsageSink keeps rows for good.
type UsageSink interface {
	// Append writes rows of one calendar month down before it returns, all or
	// none of them.
	Append(rows []UsageRow) error
	// MonthMessages is what each cluster has pushed in at's calendar month, by
	// cluster id, as far as it was written down.
	MonthMessages(at time.Time) (map[string]int64, error)
}

// usageKey names one row.
type usageKey struct {
	cluster string
	minute  int64 // since the epoch
	class   OpClass
}

// usage is the meter: rows of open minutes, and the month's messages.
type usage struct {
	sink UsageSink // nil: rows are counted and dropped

	mu     sync.Mutex // guards the fields below
	rows   map[usageKey]*UsageRow
	month  time.Time        // first instant of the month totals is of
	totals map[string]int64 // messages of the month by cluster id

	flushing sync.Mutex // one flush at a time; never waited for by a request
}

// newUsage opens the meter on what was written down before.
func newUsage(sink UsageSink, now time.Time) (*usage, error) {
	u := &usage{sink: sink, rows: map[usageKey]*UsageRow{}, month: monthOf(now), totals: map[string]int64{}}
	if sink == nil {
		return u, nil
	}
	totals, err := sink.MonthMessages(now)
	if err != nil {
		return nil, err
	}
	if totals != nil {
		u.totals = totals
	}
	return u, nil
}

// monthOf is the first instant of a time's calendar month, UTC.
func monthOf(at time.Time) time.Time {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// book adds one request to its row.
func (u *usage) book(cluster string, class OpClass, one UsageRow, now time.Time) {
	key := usageKey{cluster: cluster, minute: now.Unix() / 60, class: class}
	u.mu.Lock()
	defer u.mu.Unlock()
	row := u.rows[key]
	if row == nil {
		row = &UsageRow{Cluster: cluster, Minute: time.Unix(key.minute*60, 0).UTC(), Class: class}
		u.rows[key] = row
	}
	row.add(&one)
	u.turnMonth(now)
	u.totals[cluster] += one.Msgs
}

// turnMonth begins the totals anew on the first of a month.
func (u *usage) turnMonth(now time.Time) {
	if m := monthOf(now); m.After(u.month) {
		u.month, u.totals = m, map[string]int64{}
	}
}

// monthTotal is what a cluster has pushed in this month.
func (u *usage) monthTotal(cluster string, now time.Time) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turnMonth(now)
	return u.totals[cluster]
}

// flush writes down the rows of closed minutes, or all of them. Rows that
// cannot be written stay for the next time.
func (u *usage) flush(now time.Time, all bool) error {
	if u.sink == nil {
		return nil
	}
	u.flushing.Lock()
	defer u.flushing.Unlock()
	rows := u.take(now.Unix()/60, all)
	for len(rows) > 0 {
		n := oneMonth(rows)
		if err := u.sink.Append(rows[:n]); err != nil {
			u.giveBack(rows)
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// oneMonth counts the rows at the front that are of the first one's month.
func oneMonth(rows []UsageRow) int {
	first := monthOf(rows[0].Minute)
	n := 1
	for n < len(rows) && monthOf(rows[n].Minute).Equal(first) {
		n++
	}
	return n
}

// take removes the rows that are due, in order.
func (u *usage) take(current int64, all bool) []UsageRow {
	u.mu.Lock()
	defer u.mu.Unlock()
	var due []UsageRow
	for key, row := range u.rows {
		if all || key.minute < current {
			due = append(due, *row)
			delete(u.rows, key)
		}
	}
	slices.SortFunc(due, compareRows)
	return due
}

// giveBack puts rows that were not written down back.
func (u *usage) giveBack(rows []UsageRow) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range rows {
		key := usageKey{cluster: rows[i].Cluster, minute: rows[i].Minute.Unix() / 60, class: rows[i].Class}
		if row := u.rows[key]; row != nil {
			row.add(&rows[i])
		} else {
			u.rows[key] = &rows[i]
		}
	}
}

// open lists the rows that are not written down yet.
func (u *usage) open() []UsageRow {
	u.mu.Lock()
	defer u.mu.Unlock()
	rows := make([]UsageRow, 0, len(u.rows))
	for _, row := range u.rows {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, compareRows)
	return rows
}

func compareRows(a, b UsageRow) int {
	return cmp.Or(a.Minute.Compare(b.Minute), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Class, b.Class))
}

// FlushUsage writes metering rows down: those of closed minutes, which the cell
// does every 15 s, or all of them, which it does at its end.
func (p *Proxy) FlushUsage(all bool) error { return p.usage.flush(p.clock(), all) }

// OpenUsage lists the metering rows that FlushUsage has still to write down.
func (p *Proxy) OpenUsage() []UsageRow { return p.usage.open() }

// opClass is the class a route is metered under; "" is not metered.
func (t target) opClass() OpClass {
	switch {
	case t.class == classBlocked, t.class == classOwn:
		return ""
	case t.route == RoutePush:
		return OpPush
	case t.route == RouteTransaction:
		return OpTxn
	case t.route == RoutePop:
		return OpDelivery
	case t.class == classQueueAdmin:
		return OpConfigure
	default:
		return OpRead
	}
}

// meter books a request that was handed on, by what its handler noted. What the
// proxy itself refused is nobody's bill.
func (p *Proxy) meter(c *call) {
	class := c.target.opClass()
	if class == "" {
		return
	}
	row := UsageRow{Reqs: 1}
	if c.status < 500 {
		row.Msgs, row.BytesOut = c.msgs, c.sent
		if class != OpRead {
			row.BytesIn = c.received
		}
	}
	p.usage.book(c.cluster.ID, class, row, p.clock())
}
