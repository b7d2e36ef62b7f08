package result

import (
	"fmt"
	"strings"
)

// Names of peers and workloads that aims speak of.
const (
	subject   = "queen-edge"
	kafka     = "kafka-ssl"
	kafkaSync = "kafka-ssl-sync"
	bareTLS   = "bare-tls"

	base       = "1KB-none"
	singles    = "latency-500"
	warmLogin  = "login-warm"
	idleConns  = "idle-connections"
	producing  = "/produce"
	consuming  = "/consume"
	gatewayOne = "gateway"
)

// Aim is something to be reached, and what was measured.
type Aim struct {
	Measure, Aim string
	Value        string // measured; "not measured"
	Reached      string // "reached", "not reached", or ""
}

// Aims are the aims with their values.
func (r *Run) Aims() []Aim {
	return []Aim{
		r.atLeastRatio("produce, 1 KB, JSON contract", kafkaSync, base+producing, MBps, .5, "Apache Kafka SASL_SSL that syncs", ", stretch 0.8×"),
		r.atLeastRatio("consume, 1 KB, JSON contract", kafkaSync, base+consuming, MBps, .5, "Apache Kafka SASL_SSL that syncs", ", stretch 0.8×"),
		r.latencyAim(),
		r.atMost("single-record produce p99 at 500/s", singles, P99, 5, "ms"),
		r.atLeastRatio("new logins/s, warm token", bareTLS, warmLogin, LoginsPerS, .9, "bare crypto/tls plus three echo round trips", ""),
		r.atLeastRatio("new logins/s, warm token", kafka, warmLogin, LoginsPerS, 3, "Apache Kafka", ""),
		r.atMost("memory per idle logged-in connection", idleConns, KiBEach+"."+gatewayOne, 40, "KiB"),
		r.atMost("cell requests per 1,000 records produced (batched)", base+producing, CellPerK, 2, ""),
	}
}

func (r *Run) atLeastRatio(measure, other, workload, value string, least float64, name, more string) Aim {
	a := Aim{Measure: measure, Aim: fmt.Sprintf("≥ %g× %s%s", least, name, more)}
	a.judge(r.Ratio(subject, other, workload, value))(func(s Spread) (string, bool) {
		return spread(s, true) + " ×", s.Median >= least
	})
	return a
}

func (r *Run) atMost(measure, workload, value string, most float64, unit string) Aim {
	a := Aim{Measure: measure, Aim: strings.TrimSpace(fmt.Sprintf("≤ %g %s", most, unit))}
	a.judge(r.Of(subject, workload, value))(func(s Spread) (string, bool) {
		return strings.TrimSpace(spread(s, true) + " " + unit), s.Median <= most
	})
	return a
}

func (r *Run) latencyAim() Aim {
	a := Aim{Measure: "single-record produce p99 at 500/s", Aim: "≤ Apache Kafka that syncs"}
	a.judge(r.Ratio(subject, kafkaSync, singles, P99))(func(s Spread) (string, bool) {
		return spread(s, true) + " ×", s.Median <= 1
	})
	return a
}

// judge takes the value, and then how it is told and whether it is enough.
func (a *Aim) judge(s Spread, ok bool) func(func(Spread) (string, bool)) {
	return func(tell func(Spread) (string, bool)) {
		if !ok {
			a.Value = "not measured"
			return
		}
		var reached bool
		a.Value, reached = tell(s)
		a.Reached = map[bool]string{true: "reached", false: "not reached"}[reached]
	}
}
