package figures

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// BenchmarkNoisyNeighbour is one tenant that sends 10 records a second while
// another one's 200 connections send as fast as they are answered: the quiet one's
// p50 and p99, alone and beside the noise, in pairs of runs. Cell, gateway and both
// clients are a process each; they share the cores of the machine, so that what is
// left of the noise without limits is the machine's and the cell's as well. In
// gateway the gateway alone is what saturates: it has one processor, and a cell that
// costs next to nothing.
func BenchmarkNoisyNeighbour(b *testing.B) {
	unfair := []string{"QUEEN_KAFKA_TENANT_RESERVE=0"} // which takes no turns between tenants
	for _, bench := range []struct {
		name     string
		size     int  // bytes of the noise's records
		cheap    bool // the gateway has one processor, and a cell that takes none
		settings []string
	}{
		{"1KB/off", 1000, false, nil},
		{"1KB/off/unfair", 1000, false, unfair},
		{"1KB/limits", 1000, false, []string{"QUEEN_KAFKA_TENANT_MAX_REQUEST_RATE=500"}},
		{"1KB/gateway", 1000, true, nil},
		{"1KB/gateway/unfair", 1000, true, unfair},
		{"400KB/off", 400_000, false, nil},
		{"400KB/off/unfair", 400_000, false, unfair},
		{"400KB/limits", 400_000, false, []string{"QUEEN_KAFKA_TENANT_MAX_REQUEST_RATE=20"}},
		{"400KB/bytes", 400_000, false, []string{"QUEEN_KAFKA_TENANT_MAX_INFLIGHT_BYTES=8388608"}},
		{"400KB/gateway", 400_000, true, nil},
		{"400KB/gateway/unfair", 400_000, true, unfair},
	} {
		b.Run(bench.name, func(b *testing.B) {
			const noisy, records = 200, 100
			d := start(b)
			settings := slices.Clone(bench.settings)
			if bench.cheap {
				settings = append(settings, "GOMAXPROCS=1", "QUEEN_URL="+d.cheap(b))
			}
			g := d.before(b, settings...)
			var ratios, alone50, alone99, p50, p99, rate, cpus, cellCPUs []float64
			for b.Loop() {
				a := g.quiet(b, records)
				flood := g.client(b, "ACME", "flood", noisy, "-size", strconv.Itoa(bench.size))
				flood.line()
				sent := g.metric(b, "queen_edge_produce_requests_total")
				began, used, cellUsed := time.Now(), cpu(b, g.PID), cpu(b, d.pid)
				q := g.quiet(b, records)
				took := time.Since(began).Seconds()
				rate = append(rate, (g.metric(b, "queen_edge_produce_requests_total")-sent)/took)
				cpus, cellCPUs = append(cpus, (cpu(b, g.PID)-used)/took), append(cellCPUs, (cpu(b, d.pid)-cellUsed)/took)
				flood.end()
				alone50, alone99 = append(alone50, a[len(a)/2]), append(alone99, a[len(a)*99/100])
				p50, p99 = append(p50, q[len(q)/2]), append(p99, q[len(q)*99/100])
				ratios = append(ratios, p99[len(p99)-1]/alone99[len(alone99)-1])
			}
			b.ReportMetric(median(alone50), "alone-p50ms")
			b.ReportMetric(median(alone99), "alone-p99ms")
			b.ReportMetric(median(p50), "p50ms")
			b.ReportMetric(median(p99), "p99ms")
			b.ReportMetric(median(ratios), "p99-ratio")
			b.ReportMetric(median(rate), "requests/s")
			b.ReportMetric(median(cpus), "gateway-cpus")
			b.ReportMetric(median(cellCPUs), "cell-cpus")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// quiet is what n records of the other tenant took, in ms, the fastest first.
func (g *gateway) quiet(b *testing.B, n int) []float64 {
	b.Helper()
	lines := g.client(b, "GLOBEX", "quiet", n).end()
	var took []float64
	for _, line := range lines {
		us, err := strconv.ParseFloat(line, 64)
		must(b, err)
		took = append(took, us/1000)
	}
	slices.Sort(took)
	return took
}
