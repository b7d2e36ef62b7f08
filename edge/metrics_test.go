package edge

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/proxyclient"
)

func newTestMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.meterAPIs()
	m.meterCalls()
	return m
}

// To count a request, or a call, allocates nothing.
func TestCountingAllocatesNothing(t *testing.T) {
	m, row := newTestMetrics(), &api.Table()[0]
	r := api.Request{Row: row, Frame: make([]byte, 100), Arrived: time.Now()}
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() { m.request(r, api.Answered, 50) }); n != 0 {
		t.Errorf("a request: %v allocations", n)
	}
	d := proxyclient.Done{Route: proxyclient.RouteSizes, Status: 200, Took: time.Millisecond}
	if n := testing.AllocsPerRun(1000, func() { m.call(ctx, d) }); n != 0 {
		t.Errorf("a call: %v allocations", n)
	}
}

func TestStatusClass(t *testing.T) {
	left, leave := context.WithCancel(context.Background())
	leave()
	for status, want := range map[int]string{0: "none", 99: "none", 101: "1xx", 200: "2xx", 302: "3xx", 404: "4xx", 429: "429", 499: "4xx", 507: "5xx", 600: "none"} {
		if got := statusClasses[statusClass(context.Background(), status)]; got != want {
			t.Errorf("%d is %s, want %s", status, got, want)
		}
	}
	if got := statusClasses[statusClass(left, 0)]; got != "cancelled" {
		t.Errorf("a call that nobody waits for is %s", got)
	}
}

func BenchmarkCounting(b *testing.B) {
	m, row := newTestMetrics(), &api.Table()[0]
	r := api.Request{Row: row, Frame: make([]byte, 100), Arrived: time.Now()}
	d := proxyclient.Done{Route: proxyclient.RouteSizes, Status: 200, Took: time.Millisecond}
	b.Run("request", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.request(r, api.Answered, 50)
		}
	})
	b.Run("call", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.call(context.Background(), d)
		}
	})
}
