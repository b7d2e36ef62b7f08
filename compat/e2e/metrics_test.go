package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
)

// series is one number of a page; −1: there is none of that name and labels.
func series(t *testing.T, page, name string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(page)
	if m == nil {
		return -1
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantSeries(t *testing.T, page string, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if got := series(t, page, name); got != v {
			t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
}

func (s side) metrics(t *testing.T) string {
	t.Helper()
	status, page := s.get(t, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d", status)
	}
	return page
}

// Each request is counted once, by its API and the worst its answer says, with
// its bytes and its time; requests that share a call are counted each for itself.
func TestMetricsOfRequests(t *testing.T) {
	r := rig.Start(t)
	s := startSide(t, r, "")
	w := r.Login(t, rig.Acme)
	w.Ask(kmsg.NewPtrApiVersionsRequest())
	w.Ask(kmsg.NewPtrDescribeClusterRequest())
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Version, describe.Groups = 6, []string{"nobody-knows"}
	w.Ask(describe) // 69

	bad := kmsg.NewPtrListGroupsRequest()
	frame := rig.Frame(bad, 9, "rig")
	frame = append(frame, 0)
	frame[3]++
	w.SendRaw(frame)
	w.WantClosed()

	page := s.metrics(t)
	wantSeries(t, page, map[string]float64{
		`queen_edge_requests_total{api="SASLHandshake",outcome="ok"}`:            1,
		`queen_edge_requests_total{api="SASLAuthenticate",outcome="ok"}`:         1,
		`queen_edge_requests_total{api="ApiVersions",outcome="ok"}`:              1,
		`queen_edge_requests_total{api="DescribeCluster",outcome="ok"}`:          1,
		`queen_edge_requests_total{api="DescribeGroups",outcome="refused"}`:      1,
		`queen_edge_requests_total{api="DescribeGroups",outcome="ok"}`:           0,
		`queen_edge_requests_total{api="ListGroups",outcome="closed"}`:           1,
		`queen_edge_requests_total{api="Produce",outcome="ok"}`:                  0,
		`queen_edge_request_seconds_count{api="DescribeCluster"}`:                1,
		`queen_edge_request_seconds_bucket{api="DescribeCluster",le="+Inf"}`:     1,
		`queen_edge_received_bytes_total{api="ListGroups"}`:                      float64(len(frame)),
		`queen_edge_sent_bytes_total{api="ListGroups"}`:                          0,
		`queen_edge_cell_calls_total{route="list_queues",status="2xx"}`:          1,
		`queen_edge_cell_calls_total{route="identify",status="2xx"}`:             1,
		`queen_edge_cell_call_seconds_count{route="list_queues"}`:                1,
		`queen_edge_identity_cache_requests_total{cache="checks",result="miss"}`: 1,
		`queen_edge_identity_cache_entries{cache="identities"}`:                  1,
		`queen_edge_in_flight_bytes`:                                             0,
	})
	if got := series(t, page, `queen_edge_sent_bytes_total{api="DescribeCluster"}`); got < 30 {
		t.Errorf("an answer of DescribeCluster has %v bytes", got)
	}
	r.Login(t, rig.Acme)
	wantSeries(t, s.metrics(t), map[string]float64{
		`queen_edge_identity_cache_requests_total{cache="checks",result="hit"}`: 1,
	})
}

// What a cell refuses is counted by what it said, and what that does to requests
// is unavailable, not refused: that is what an operator is woken for.
func TestMetricsOfACellThatFails(t *testing.T) {
	var p *inject.Proxy
	r := rig.Start(t, rig.WithFaults(t, &p))
	s := startSide(t, r, "")
	r.Kafka(t, rig.Acme).ProduceSync(rig.Context(t), &kgo.Record{Topic: "t", Value: []byte("v")})
	before := s.metrics(t)
	for _, kind := range []inject.Kind{inject.Throttle, inject.Refuse, inject.CutBefore} {
		if err := p.Add(inject.Rule{Kind: kind, Route: "/api/v1/push", Count: 1}); err != nil {
			t.Fatal(err)
		}
		r.Login(t, rig.Acme).Ask(wireProduce(1, "t", 0, recordBatch(noProducer(), "v")))
	}
	page := s.metrics(t)
	wantSeries(t, page, map[string]float64{
		`queen_edge_cell_calls_total{route="push",status="429"}`:         1,
		`queen_edge_cell_calls_total{route="push",status="5xx"}`:         1,
		`queen_edge_requests_total{api="Produce",outcome="unavailable"}`: 3,
		`queen_edge_cell_calls_total{route="push",status="none"}`:        1,
		`queen_edge_requests_total{api="Produce",outcome="ok"}`:          series(t, before, `queen_edge_requests_total{api="Produce",outcome="ok"}`),
	})
}

// Tenants are named by what the cell calls them, to operators with the token
// alone, the largest first.
func TestMetricsOfTenants(t *testing.T) {
	open := rig.Start(t)
	open.Login(t, rig.Acme)
	if page := startSide(t, open, "").metrics(t); strings.Contains(page, "queen_edge_tenant_connections") {
		t.Error("a page that asks for no token names tenants")
	}
	r := rig.Start(t, scrapeToken)
	ids := map[string]string{}
	for _, c := range r.Cell.Control().Clusters() {
		ids[c.Slug] = c.ID.String()
	}
	r.Login(t, rig.Acme)
	r.Login(t, rig.Acme2)
	r.Login(t, rig.Globex)
	r.Dial(t)
	page := startSide(t, r, "scrape").metrics(t)
	wantSeries(t, page, map[string]float64{
		fmt.Sprintf(`queen_edge_tenant_connections{tenant=%q}`, ids["acme"]):   2,
		fmt.Sprintf(`queen_edge_tenant_connections{tenant=%q}`, ids["globex"]): 1,
		`queen_edge_tenant_connections{tenant="other"}`:                        0,
		`queen_edge_tenant_connections{tenant="unresolved"}`:                   0,
	})
	for line := range strings.Lines(page) {
		if strings.Contains(line, ids["acme"]) && !strings.HasPrefix(line, "queen_edge_tenant_connections{") {
			t.Errorf("a tenant is named in %q", line)
		}
	}
}

// Transactions are counted by how they end, each once.
func TestMetricsOfTransactions(t *testing.T) {
	r := rig.Start(t)
	s := startSide(t, r, "")
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryAbort} {
		c := r.Kafka(t, rig.Acme, kgo.TransactionalID("counted"))
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := c.ProduceSync(rig.Context(t), &kgo.Record{Topic: "counted", Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		page := s.metrics(t)
		wantSeries(t, page, map[string]float64{`queen_edge_transactions_open`: 1, `queen_edge_transactional_ids`: 1})
		if series(t, page, `queen_edge_transactions_staged_bytes`) < 1 {
			t.Error("nothing is staged")
		}
		if err := c.EndTransaction(rig.Context(t), end); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	wantSeries(t, s.metrics(t), map[string]float64{
		`queen_edge_transactions_open`:                             0,
		`queen_edge_transactions_ended_total{outcome="committed"}`: 1,
		`queen_edge_transactions_ended_total{outcome="aborted"}`:   2,
		`queen_edge_transactions_ended_total{outcome="expired"}`:   0,
	})
}
