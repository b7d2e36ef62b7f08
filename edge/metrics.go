package edge

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/queen-mq/queen-edge/edge/group"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// metrics are what an operator sees of a Server (B7). Every label comes from a
// fixed set: nothing that a client or a tenant chose is ever one.
type metrics struct {
	registry *prometheus.Registry
	commits  *prometheus.HistogramVec
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		commits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "queen_edge_offset_commit_seconds",
			Help:    "Time from an offset commit's arrival at the store to its outcome, by outcome.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"outcome"}),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.commits, s.numbers(),
	)
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

// page answers with all of them.
func (m *metrics) page() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
}

// number is what a part of a Server counts anyway, read when somebody asks.
type number struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(tell tell)
}

// tell is told one value, and its labels in the order of the number's.
type tell func(v float64, labels ...string)

// numbers are those of one Server.
type numbers []number

func gauge(name, help string, read func(tell), labels ...string) number {
	return number{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, read}
}

func counter(name, help string, read func(tell), labels ...string) number {
	return number{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, read}
}

// Describe implements prometheus.Collector.
func (all numbers) Describe(ch chan<- *prometheus.Desc) {
	for _, n := range all {
		ch <- n.desc
	}
}

// Collect implements prometheus.Collector.
func (all numbers) Collect(ch chan<- prometheus.Metric) {
	for _, n := range all {
		n.read(func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(n.desc, n.kind, v, labels...)
		})
	}
}

func (s *Server) numbers() numbers {
	return numbers{
		gauge("queen_edge_ready", "1 while new connections are welcome: not before the listener is open, nor during a drain.", s.tellReady),
		gauge("queen_edge_connections", "Open connections, by whether they have logged in.", s.tellConnections, "state"),
		counter("queen_edge_connections_closed_total", "Ended connections, by the one reason each had and whose doing it was.", s.tellClosed, "reason", "side"),
		counter("queen_edge_logins_total", "Logins, later ones of a connection included, by how they ended and by mechanism.", s.logins.tell, "outcome", "mechanism"),
		gauge("queen_edge_groups", "Consumer groups this process coordinates, by state.", s.tellGroups, "state"),
		gauge("queen_edge_group_members", "Members of all consumer groups.", func(tell tell) { tell(float64(s.groups.Stats().Members)) }),
		counter("queen_edge_group_rebalances_total", "Rebalances of consumer groups, by what caused them.", s.tellRebalances, "reason"),
		counter("queen_edge_group_rebalance_timeouts_cut_total", "Joins that asked for a longer rebalance timeout than 30 minutes.",
			func(tell tell) { tell(float64(s.groups.Stats().Clamped)) }),
		counter("queen_edge_produce_requests_total", "Produce requests answered.",
			func(tell tell) { tell(float64(s.handlers.Stats.ProduceFrames())) }),
		counter("queen_edge_cell_pushes_total", "Calls that pushed records to the cell.",
			func(tell tell) { tell(float64(s.handlers.Stats.Pushes())) }),
	}
}

func (s *Server) tellReady(tell tell) {
	v := 0.0
	if s.ready.Load() {
		v = 1
	}
	tell(v)
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

func (s *Server) tellGroups(tell tell) {
	for phase, n := range s.groups.Stats().Groups {
		tell(float64(n), group.Phase(phase).String())
	}
}

func (s *Server) tellRebalances(tell tell) {
	for reason, n := range s.groups.Stats().Rebalances {
		tell(float64(n), group.Reason(reason).String())
	}
}
