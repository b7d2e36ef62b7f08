package edge

import (
	"cmp"
	"context"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/group"
	"github.com/queen-mq/queen-edge/edge/turn"
	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// metrics are what an operator sees of a Server (B7). Every label comes from a
// fixed set, or is a cluster id that the cell gave: nothing that a client chose is
// ever one.
//
// What happens with every request is counted by children that were looked up
// beforehand: to count takes neither a lock nor memory.
type metrics struct {
	registry *prometheus.Registry
	commits  *prometheus.HistogramVec
	apis     []apiMeter  // by API key
	calls    []callMeter // one for each route of the cell
}

// apiMeter counts the requests of one API.
type apiMeter struct {
	took     prometheus.Observer
	outcomes [api.Outcomes]prometheus.Counter
	received prometheus.Counter
	sent     prometheus.Counter
}

// callMeter counts the calls of one route of the cell.
type callMeter struct {
	route    string
	took     prometheus.Observer
	statuses [len(statusClasses)]prometheus.Counter
}

// buckets of times in seconds: from what a cache answers to what clients give up.
func buckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		commits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "queen_edge_offset_commit_seconds",
			Help:    "Time from an offset commit's arrival at the store to its outcome, by outcome.",
			Buckets: buckets(),
		}, []string{"outcome"}),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.commits, scrape{s},
	)
	m.meterAPIs()
	m.meterCalls()
	for _, outcome := range []string{stored, notStored} {
		m.commits.WithLabelValues(outcome)
	}
	return m
}

// Outcomes of a commit.
const (
	stored    = "stored"
	notStored = "not_stored"
)

// commit notes how long a commit took.
func (m *metrics) commit(took time.Duration, err error) {
	outcome := stored
	if err != nil {
		outcome = notStored
	}
	m.commits.WithLabelValues(outcome).Observe(took.Seconds())
}

// meterAPIs makes the children of every API of the table.
func (m *metrics) meterAPIs() {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "queen_edge_request_seconds",
		Help:    "Time from a request's arrival, whole, to its answer, not yet sent, by API. Fetch and JoinGroup include what they wait for.",
		Buckets: buckets(),
	}, []string{"api"})
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "queen_edge_requests_total", Help: "Requests by API and by the worst that an answer says.",
	}, []string{"api", "outcome"})
	received := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "queen_edge_received_bytes_total", Help: "Bytes of request frames, by API.",
	}, []string{"api"})
	sent := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "queen_edge_sent_bytes_total", Help: "Bytes of answer frames, by API.",
	}, []string{"api"})
	m.registry.MustRegister(took, ended, received, sent)
	for _, row := range api.Table() {
		for len(m.apis) <= int(row.Key) {
			m.apis = append(m.apis, apiMeter{})
		}
		meter := &m.apis[row.Key]
		meter.took = took.WithLabelValues(row.Name)
		meter.received, meter.sent = received.WithLabelValues(row.Name), sent.WithLabelValues(row.Name)
		for o := range api.Outcomes {
			meter.outcomes[o] = ended.WithLabelValues(row.Name, o.String())
		}
	}
}

// request notes a request that was served, and the length of its answer.
func (m *metrics) request(r api.Request, o api.Outcome, answer int) {
	meter := &m.apis[r.Row.Key]
	meter.took.Observe(time.Since(r.Arrived).Seconds())
	meter.outcomes[o].Inc()
	meter.received.Add(float64(len(r.Frame) + wire.SizeBytes))
	meter.sent.Add(float64(answer))
}

// statusClasses are the labels of a call's status. 429 stands for itself: it is
// the cell's word for a tenant's quota. A call without an answer is cancelled
// where nobody waited for one any more: a client that leaves ends its long poll.
var statusClasses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "429", "5xx", "cancelled"}

// statusClass is the place of a call's status among them.
func statusClass(ctx context.Context, status int) int {
	switch {
	case status == 0 && ctx.Err() != nil:
		return 7
	case status == http.StatusTooManyRequests:
		return 5
	case status >= 500 && status < 600:
		return 6
	case status >= 100 && status < 500:
		return status / 100
	}
	return 0
}

// meterCalls makes the children of every route of the cell.
func (m *metrics) meterCalls() {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "queen_edge_cell_call_seconds",
		Help:    "Time of calls to the cell, the reading of the answer included, by route. A fetch is held until there are records.",
		Buckets: buckets(),
	}, []string{"route"})
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "queen_edge_cell_calls_total", Help: "Calls to the cell, by route and class of HTTP status; none: no answer came; cancelled: nobody waited for it any more.",
	}, []string{"route", "status"})
	m.registry.MustRegister(took, ended)
	for _, route := range proxyclient.Routes() {
		meter := callMeter{route: route, took: took.WithLabelValues(route)}
		for i, class := range statusClasses {
			meter.statuses[i] = ended.WithLabelValues(route, class)
		}
		m.calls = append(m.calls, meter)
	}
}

// call notes a call to the cell.
func (m *metrics) call(ctx context.Context, d proxyclient.Done) {
	for i := range m.calls {
		if meter := &m.calls[i]; meter.route == d.Route {
			meter.took.Observe(d.Took.Seconds())
			meter.statuses[statusClass(ctx, d.Status)].Inc()
			return
		}
	}
}

// Bounds of scrapes: a page holds thousands of lines.
const (
	scrapesAtOnce = 3
	scrapeTimeout = 10 * time.Second
)

// page answers with all of them.
func (m *metrics) page() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.HTTPErrorOnError,
		MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeTimeout,
	})
}

// number is what a part of a Server counts anyway, read when somebody asks.
type number struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(tell tell)
}

// tell is told one value, and its labels in the order of the number's.
type tell func(v float64, labels ...string)

func gauge(name, help string, read func(tell), labels ...string) number {
	return number{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, read}
}

func counter(name, help string, read func(tell), labels ...string) number {
	return number{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, read}
}

// scrape reads the numbers of a Server.
type scrape struct{ s *Server }

// Describe implements prometheus.Collector.
func (c scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, n := range c.s.numbers() {
		ch <- n.desc
	}
}

// Collect implements prometheus.Collector.
func (c scrape) Collect(ch chan<- prometheus.Metric) {
	for _, n := range c.s.numbers() {
		n.read(func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(n.desc, n.kind, v, labels...)
		})
	}
}

// numbers are those of one scrape: what several of them are read from is read
// once.
func (s *Server) numbers() []number {
	groups := sync.OnceValue(func() group.Stats { return s.groups.Stats() })
	txns := sync.OnceValue(func() txn.Stats { return s.txns.Stats() })
	turns := sync.OnceValue(func() turn.Stats { return s.turns.Stats() })
	return []number{
		gauge("queen_edge_build_info", "1, with the version of the program and of Go.", tellBuild, "version", "goversion"),
		gauge("queen_edge_ready", "1 while new connections are welcome: not before the listener is open, nor during a drain.",
			func(tell tell) { tell(oneIf(s.ready.Load())) }),
		gauge("queen_edge_draining", "1 from the order to stop until the process ends.",
			func(tell tell) { tell(oneIf(s.draining.Load())) }),
		gauge("queen_edge_connections", "Open connections, by whether they have logged in.", s.tellConnections, "state"),
		gauge("queen_edge_connections_limit", "Connections that the process takes, QUEEN_KAFKA_MAX_CONNECTIONS.",
			func(tell tell) { tell(float64(s.cfg.MaxConnections)) }),
		gauge("queen_edge_tenant_connections", "Connections that have logged in, by the cluster that the cell named; only where the metrics ask for a token.",
			s.tellTenants, "tenant"),
		counter("queen_edge_connections_accepted_total", "Accepted connections: each is open, or has ended for a reason.",
			func(tell tell) { tell(float64(s.Accepted())) }),
		counter("queen_edge_connections_closed_total", "Ended connections, by the one reason each had and whose doing it was.", s.tellClosed, "reason", "side"),
		counter("queen_edge_logins_total", "Logins, later ones of a connection included, by how they ended and by mechanism.", s.logins.tell, "outcome", "mechanism"),
		counter("queen_edge_login_checks_total", "Calls that asked the cell about a token, by what for.", s.tellChecks, "why", "call"),
		counter("queen_edge_logins_braked_total", "Logins that waited, or were turned away unchecked, because many were refused.", s.tellBraked, "brake", "how"),
		gauge("queen_edge_in_flight_bytes", "Memory set aside for requests that have not been answered.",
			func(tell tell) { tell(float64(s.inFlight.Total())) }),
		gauge("queen_edge_in_flight_limit_bytes", "What may be set aside; above it reading waits.",
			func(tell tell) { tell(float64(s.inFlight.Limit())) }),
		counter("queen_edge_identity_cache_requests_total", "Look-ups of what the cell said of a credential, by cache and by whether it was there.",
			s.tellIdentityRequests, "cache", "result"),
		gauge("queen_edge_identity_cache_entries", "Credentials kept, by cache.", s.tellIdentityEntries, "cache"),
		gauge("queen_edge_groups", "Consumer groups this process coordinates, by state.", func(tell tell) {
			for phase, n := range groups().Groups {
				tell(float64(n), group.Phase(phase).String())
			}
		}, "state"),
		gauge("queen_edge_group_members", "Members of all consumer groups.", func(tell tell) { tell(float64(groups().Members)) }),
		counter("queen_edge_group_rebalances_total", "Rebalances of consumer groups, by what caused them.", func(tell tell) {
			for reason, n := range groups().Rebalances {
				tell(float64(n), group.Reason(reason).String())
			}
		}, "reason"),
		counter("queen_edge_group_rebalance_timeouts_cut_total", "Joins that asked for a longer rebalance timeout than 30 minutes.",
			func(tell tell) { tell(float64(groups().Clamped)) }),
		counter("queen_edge_groups_moved_total", "Consumer groups let go because another node coordinates them.",
			func(tell tell) { tell(float64(groups().Released)) }),
		counter("queen_edge_commit_fence_losses_total", "Writes to a group that another node had written to before.",
			func(tell tell) { tell(float64(s.offsets.FencesLost())) }),
		gauge("queen_edge_cluster_nodes", "Nodes that this one knows of, itself included; 1 in single mode.",
			func(tell tell) { tell(float64(s.nodesSeen())) }),
		gauge("queen_edge_cluster_coordinates", "1 while this node coordinates groups: not before its id is claimed, nor while the registry is away for longer than its row lives.",
			func(tell tell) { tell(oneIf(s.coordinates())) }),
		gauge("queen_edge_transactions_open", "Transactions with partitions or offsets that have not ended.",
			func(tell tell) { tell(float64(txns().Open)) }),
		gauge("queen_edge_transactional_ids", "Transactional ids in memory, those without a transaction included.",
			func(tell tell) { tell(float64(txns().Held)) }),
		gauge("queen_edge_transactions_staged_bytes", "Memory of all transactions' records and offsets.",
			func(tell tell) { tell(float64(txns().Staged)) }),
		gauge("queen_edge_transactions_staged_limit_bytes", "What they may take, QUEEN_KAFKA_TXN_MAX_STAGED_BYTES.",
			func(tell tell) { tell(float64(s.cfg.Txn.MaxStagedBytes)) }),
		counter("queen_edge_transactions_ended_total", "Transactions that have ended, by how.", func(tell tell) {
			for how, n := range txns().Ended() {
				tell(float64(n), how)
			}
		}, "outcome"),
		counter("queen_edge_throttled_answers_total", "Answers that asked their client to wait because its tenant was over its request rate.",
			func(tell tell) { tell(float64(s.limits.throttled.Load())) }),
		counter("queen_edge_throttle_seconds_total", "How long they asked for in all.",
			func(tell tell) { tell(float64(s.limits.asked.Load()) / 1000) }),
		gauge("queen_edge_turns_limit", "Requests that are served at once while the process is late and several tenants are there; 0: nobody has to wait.",
			func(tell tell) { tell(float64(turns().Limit)) }),
		gauge("queen_edge_turns_waiting", "Requests that wait for their tenant's turn.",
			func(tell tell) { tell(float64(turns().Waiting)) }),
		counter("queen_edge_turn_waits_total", "Requests that have waited for their tenant's turn.",
			func(tell tell) { tell(float64(turns().Waits)) }),
		counter("queen_edge_turn_wait_seconds_total", "How long they have waited in all.",
			func(tell tell) { tell(turns().Waited.Seconds()) }),
		counter("queen_edge_audit_lines_total", "Lines for the audit log, by what became of them.", s.tellAudit, "result"),
		counter("queen_edge_trace_spans_total", "Spans for the OTLP receiver, by whether it took them.", s.tellSpans, "result"),
		counter("queen_edge_produce_requests_total", "Produce requests answered.",
			func(tell tell) { tell(float64(s.handlers.Stats.ProduceFrames())) }),
		counter("queen_edge_cell_pushes_total", "Calls that pushed records to the cell.",
			func(tell tell) { tell(float64(s.handlers.Stats.Pushes())) }),
		counter("queen_edge_tls_hellos_total", "TLS hellos by what their server name is, and what became of it.", s.tellHellos, "name", "answer"),
		counter("queen_edge_tls_handshakes_total", "TLS handshakes that ended well, by whether an earlier session went on.", s.tellHandshakes, "session"),
		counter("queen_edge_tls_file_loads_total", "Changed certificates and ticket keys, by what became of them.", s.tellFileLoads, "kind", "outcome"),
		gauge("queen_edge_certificate_expiry_seconds", "Time until a certificate in use expires, by the name its files have.", s.tellExpiries, "name"),
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// version is the program's.
func version() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "unknown"
}

func tellBuild(tell tell) {
	tell(1, version(), runtime.Version())
}

func (s *Server) tellConnections(tell tell) {
	members, strangers := s.door.counts()
	tell(float64(members), "logged_in")
	tell(float64(strangers), "not_logged_in")
}

func (s *Server) tellClosed(tell tell) {
	for _, r := range wire.Reasons() {
		tell(float64(s.closed.count(r)), r.String(), string(r.Side()))
	}
}

// Labels of the tenants that have none of their own.
const (
	otherTenants      = "other"      // beyond the largest
	unresolvedTenants = "unresolved" // credentials for which the cell names no cluster
	tenantLabels      = 100          // the largest
)

// tellTenants names the tenants that hold most. Who a gateway serves is told to
// operators only: where the page asks for no token, to nobody.
func (s *Server) tellTenants(tell tell) {
	if s.cfg.AdminToken.IsZero() {
		return
	}
	type holding struct {
		tenant string
		n      int64
	}
	var named []holding
	unresolved, rest := int64(0), int64(0)
	s.conns.Each(func(id tenancy.ID, n int64) {
		if !id.Named() {
			unresolved += n
			return
		}
		named = append(named, holding{id.String(), n})
	})
	slices.SortFunc(named, func(a, b holding) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.tenant, b.tenant)) })
	for i, h := range named {
		// A cluster may be called as one of the two is: the sums stay true.
		if i >= tenantLabels || h.tenant == otherTenants || h.tenant == unresolvedTenants {
			rest += h.n
			continue
		}
		tell(float64(h.n), h.tenant)
	}
	tell(float64(rest), otherTenants)
	tell(float64(unresolved), unresolvedTenants)
}

func (s *Server) tellIdentityRequests(tell tell) {
	checks, identities := s.verify.Stats()
	tell(float64(checks.Hits), "checks", "hit")
	tell(float64(checks.Misses), "checks", "miss")
	tell(float64(identities.Hits), "identities", "hit")
	tell(float64(identities.Misses), "identities", "miss")
}

func (s *Server) tellIdentityEntries(tell tell) {
	checks, identities := s.verify.Stats()
	tell(float64(checks.Entries), "checks")
	tell(float64(identities.Entries), "identities")
}
