package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// txnConfig changes the limits of transactions.
func txnConfig(change func(*config.Config)) func(*rig.Options) {
	return func(o *rig.Options) { o.Config = change }
}

// A transaction has so many records and bytes, and no more: above it 10, and only
// an abort goes. Both limits are inclusive.
func TestTxnTooLarge(t *testing.T) {
	r := rig.Start(t, txnConfig(func(c *config.Config) { c.Txn.MaxRecords, c.Txn.MaxBytes = 3, 100 }))
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("large"))
	p := beginTxn(t, w, "large")
	for _, c := range []struct {
		what     string
		fits     []string
		too      []string
		together string
	}{
		{"records", []string{"a", "b", "c"}, []string{"d"}, "a,b,c"},
		{"bytes", []string{strings.Repeat("x", 100)}, []string{""}, ""}, // a record of no bytes fits
		{"bytes", []string{strings.Repeat("x", 100)}, []string{"y"}, ""},
	} {
		wantCode(t, "add", p.add("large"), 0)
		wantCode(t, "what fits", p.produce("large", c.fits...), 0)
		if c.too[0] == "" {
			wantCode(t, "nothing more", p.produce("large", ""), 0)
			wantCode(t, "abort", p.abort(), 0)
			continue
		}
		wantCode(t, c.what+" above the limit", p.produce("large", c.too...), 10)
		wantCode(t, "produce behind it", p.produce("large", "e"), 48)
		wantCode(t, "commit", p.commit(), 48)
		wantCode(t, "abort", p.abort(), 0)
	}
	p.seq["large"] += 2 // it has given two batches up
	p.mustTxn("large", "next")
	wantValues(t, w, "large", "next")
}

// Ten thousand partitions, in one request; those above it are 48.
func TestTxnTooManyPartitions(t *testing.T) {
	const most = 10_000
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("wide"))
	p := beginTxn(t, w, "wide")
	req := p.addRequest("wide")
	for i := range int32(most) { // 0 is there
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, i+1)
	}
	got := p.w.Ask(req).(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions
	if len(got) != most+1 {
		t.Fatalf("%d partitions are answered", len(got))
	}
	for i := range got {
		want := int16(0)
		if i >= most {
			want = 48
		}
		if got[i].ErrorCode != want {
			t.Fatalf("partition %d: code %d, want %d", i, got[i].ErrorCode, want)
		}
	}
	wantCode(t, "produce", p.produce("wide", "v"), 0)
	wantCode(t, "commit", p.commit(), 0)
}

// positions are offsets of so many partitions.
func positions(n int) (list []at) {
	for i := range n {
		list = append(list, at{topic: "in", partition: int32(i), offset: 1})
	}
	return list
}

// As many offsets as one call to the cell takes: what the cell announces, and by
// contract 62 of one group, one less for each further group. Above that 28, for
// all of the request, and the transaction goes on without them.
func TestTxnTooManyOffsets(t *testing.T) {
	for _, c := range []struct {
		cell string
		ops  int // of one transaction
		opts []func(*rig.Options)
	}{
		{"embedded", 1024, nil},
		{"by contract", 64, []func(*rig.Options){silentCell(t)}},
	} {
		t.Run(c.cell, func(t *testing.T) {
			w := rig.Start(t, c.opts...).Login(t, rig.Acme)
			w.Ask(wireMetadata("offsets"))
			p := beginTxn(t, w, "offsets")
			most := c.ops - 2 // the fence and the group
			codes := func(group string, n int) (int16, int) {
				got := p.offsets(group, positions(n)...)
				for i := range got {
					if got[i] != got[0] {
						t.Errorf("codes of one request: %v", got)
					}
				}
				return got[0], len(got)
			}
			wantCode(t, "add offsets", p.addOffsets("g"), 0)
			if code, n := codes("g", most+1); code != 28 || n != most+1 {
				t.Errorf("%d offsets: code %d of %d", most+1, code, n)
			}
			if code, _ := codes("g", most); code != 0 {
				t.Errorf("%d offsets: code %d", most, code)
			}
			wantCode(t, "the same again", p.offsets("g", positions(1)...)[0], 0)
			wantCode(t, "another group", p.addOffsets("h"), 48)
			wantCode(t, "commit", p.commit(), 0)

			wantCode(t, "add offsets", p.addOffsets("g"), 0)
			wantCode(t, "another group", p.addOffsets("h"), 0)
			if code, _ := codes("g", most-2); code != 0 {
				t.Errorf("%d offsets beside a group: code %d", most-2, code)
			}
			if got := p.offsets("h", positions(2)...); !slices.Equal(got, []int16{28, 28}) {
				t.Errorf("two offsets of the other group: %v", got)
			}
			wantCode(t, "one of the other group", p.offsets("h", positions(1)...)[0], 0)
			wantCode(t, "commit", p.commit(), 0)
			if got := committed(t, w, offsetRequest(5, "h", "in")); got[0] != "in/0=1" {
				t.Errorf("committed: %q", got)
			}
		})
	}
}

// silentCell is the embedded cell without its announcements.
func silentCell(t *testing.T) func(*rig.Options) {
	t.Helper()
	return func(o *rig.Options) {
		o.CellAt = func(cellURL string) string {
			to, err := url.Parse(cellURL)
			if err != nil {
				t.Fatal(err)
			}
			proxy := httputil.NewSingleHostReverseProxy(to)
			proxy.ModifyResponse = func(resp *http.Response) error {
				resp.Header.Del("X-Queen-Capabilities")
				return nil
			}
			s := httptest.NewServer(proxy)
			t.Cleanup(s.Close)
			return s.URL
		}
	}
}

// Where all ids that may be held have a transaction, one more is 51, until one has
// ended. Ids between transactions make room.
func TestTxnTooManyOpen(t *testing.T) {
	r := rig.Start(t, txnConfig(func(c *config.Config) { c.Txn.MaxOpen, c.TenantReserve = 2, 0 }))
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("open"))
	var open []*wireTxn
	for i := range 2 {
		p := beginTxn(t, w, fmt.Sprint("open-", i))
		wantCode(t, "add", p.add("open"), 0)
		open = append(open, p)
	}
	late := &wireTxn{t: t, w: w, id: "late", pid: -1, epoch: -1, end: 3}
	wantCode(t, "a third one", late.init(60_000), 51)
	wantCode(t, "commit", open[0].commit(), 0)
	wantCode(t, "a third one, when one has ended", late.init(60_000), 0)
	wantCode(t, "its transaction", late.add("open"), 0)
	wantCode(t, "the first one's next", open[0].add("open"), 51)
	wantCode(t, "abort", open[1].abort(), 0)
	wantCode(t, "the first one's next, when one has ended", open[0].add("open"), 0)
}

// What all transactions hold together has a ceiling. There a batch is 7, offsets
// are 14, a partition is 51: all retriable, and nothing is lost.
func TestTxnStagedCeiling(t *testing.T) {
	r := rig.Start(t, txnConfig(func(c *config.Config) { c.Txn.MaxBytes, c.Txn.MaxStagedBytes, c.TenantReserve = 4096, 4096, 0 }))
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("staged"))
	full, p := beginTxn(t, w, "full"), beginTxn(t, r.Login(t, rig.Acme), "waits")
	wantCode(t, "add", full.add("staged"), 0)
	wantCode(t, "add", p.add("staged"), 0)
	wantCode(t, "add offsets", p.addOffsets("g"), 0)
	for full.produce("staged", strings.Repeat("x", 200)) == 0 {
		if full.seq["staged"] > 100 {
			t.Fatal("the ceiling does not hold")
		}
	}
	big := strings.Repeat("y", 400)
	wantCode(t, "a batch", p.produce("staged", big), 7)
	wantCode(t, "offsets", p.offsets("g", positions(4)...)[0], 14)
	wantCode(t, "partitions", p.add("staged", "staged-1", "staged-2", "staged-3"), 51)
	wantCode(t, "abort of the other one", full.abort(), 0)
	wantCode(t, "the batch again", p.produce("staged", big), 0)
	wantCode(t, "the offsets again", p.offsets("g", positions(4)...)[0], 0)
	wantCode(t, "the partitions again", p.add("staged", "staged-1", "staged-2", "staged-3"), 0)
	wantCode(t, "commit", p.commit(), 0)
	wantValues(t, w, "staged", big)
}
