package proxy

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// ledger is a sink in memory.
type ledger struct {
	rows []UsageRow
	err  error
	past map[string]int64
}

func (l *ledger) Append(rows []UsageRow) error {
	if l.err != nil {
		return l.err
	}
	l.rows = append(l.rows, rows...)
	return nil
}

func (l *ledger) MonthMessages(time.Time) (map[string]int64, error) { return l.past, nil }

// TestMetering is the table of cell-http §5.6, one call after the other.
func TestMetering(t *testing.T) {
	h := newHands()
	var book ledger
	r := newRig(t, clocked(h), func(cfg *Config) { cfg.Usage = &book })
	key, narrow := r.full("acme"), r.key("acme")
	v, _ := r.control.BySlug("acme")
	r.override("acme", `{"max_batch_items":2}`)
	two := `{"items":[{"queue":"q","partition":"0","payload":1,"transactionId":"a"},{"queue":"q","partition":"0","payload":2}]}`
	for _, tc := range []struct {
		name, method, path, body string
		class                    OpClass // "": no row
		msgs                     int64
		in                       bool // the body counts
	}{
		{"push", "POST", "/api/v1/push", two, OpPush, 2, true},
		{"a duplicate is no message", "POST", "/api/v1/push", two, OpPush, 1, true},
		{"a push the broker refuses", "POST", "/api/v1/push", `{`, OpPush, 0, true},
		{"transaction", "POST", "/api/v1/transaction", `{"operations":[{"type":"push",` + two[1:] + `]}`, OpTxn, 1, true},
		{"a lost transaction", "POST", "/api/v1/transaction", `{"kv":[{"op":"put","ns":"n","key":"a","value":1,"forever":true,"expect":9,"required":true}]}`, OpTxn, 0, true},
		{"configure", "POST", "/api/v1/configure", `{"queue":"c"}`, OpConfigure, 0, true},
		{"delete", "DELETE", "/api/v1/resources/queues/c", "", OpConfigure, 0, false},
		{"fetch", "POST", "/api/v1/fetch", `{"entries":[{"queue":"q","partition":"0","offset":0}]}`, OpRead, 0, false},
		{"offsets", "POST", "/api/v1/fetch/offsets", `{"entries":[]}`, OpRead, 0, false},
		{"kv", "POST", "/api/v1/kv", `[{"op":"get","ns":"n","key":"a"}]`, OpRead, 0, false},
		{"list", "GET", listPath, "", OpRead, 0, false},
		{"a route without an answer", "POST", "/api/v1/ack", `{}`, OpRead, 0, false},
		{"the proxy's own", "GET", "/auth/me", "", "", 0, false},
		{"blocked", "GET", "/api/v1/nope", "", "", 0, false},
		{"too many items", "POST", "/api/v1/push", `{"items":[{"queue":"q","payload":1},{"queue":"q","payload":1},{"queue":"q","payload":1}]}`, "", 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			book.rows = nil
			h.move(time.Minute)
			got := r.do(request{method: tc.method, path: tc.path, auth: "Bearer " + key, body: tc.body})
			h.move(time.Minute)
			if err := r.proxy.FlushUsage(false); err != nil {
				t.Fatal(err)
			}
			if tc.class == "" {
				if len(book.rows) != 0 {
					t.Errorf("%d %s booked %+v", got.status, got.body, book.rows)
				}
				return
			}
			want := UsageRow{Cluster: v.ID, Minute: h.now().Add(-time.Minute), Class: tc.class, Msgs: tc.msgs, Reqs: 1, BytesOut: int64(len(got.body))}
			if tc.in {
				want.BytesIn = int64(len(tc.body))
			}
			if len(book.rows) != 1 || book.rows[0] != want {
				t.Errorf("%d %s\nbooked %+v\nwant   %+v", got.status, got.body, book.rows, want)
			}
		})
	}
	book.rows = nil
	r.get("qk_live_x", listPath)
	r.get(narrow, listPath)
	if err := r.proxy.FlushUsage(true); err != nil || len(book.rows) != 0 {
		t.Errorf("refused calls booked %+v, %v", book.rows, err)
	}
}

// TestRowsThatCannotBeWrittenStay, and are added to.
func TestRowsThatCannotBeWrittenStay(t *testing.T) {
	h := newHands()
	book := ledger{err: errors.New("full")}
	r := newRig(t, clocked(h), func(cfg *Config) { cfg.Usage = &book })
	key := r.full("acme")
	r.get(key, listPath)
	if err := r.proxy.FlushUsage(false); err != nil {
		t.Error("an open minute was written down")
	}
	if err := r.proxy.FlushUsage(true); err == nil {
		t.Error("no error")
	}
	r.get(key, listPath)
	book.err = nil
	h.move(30 * 24 * time.Hour)
	r.get(key, listPath)
	if err := r.proxy.FlushUsage(true); err != nil {
		t.Fatal(err)
	}
	if len(book.rows) != 2 || book.rows[0].Reqs != 2 || book.rows[1].Reqs != 1 || len(r.proxy.OpenUsage()) != 0 {
		t.Errorf("%+v", book.rows)
	}
}

// TestTheLogHoldsNoKey: also a batch of keys and a refusal over rates.
func TestTheLogHoldsNoKey(t *testing.T) {
	r := newRig(t)
	key := r.full("acme")
	r.override("acme", `{"max_req_per_sec":0,"req_burst":1}`)
	for range 2 {
		r.post(key, "/api/v1/kv", `{`)
	}
	if strings.Contains(r.log.String(), key) {
		t.Error("the log holds a key")
	}
}
