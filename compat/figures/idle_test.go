package figures

import (
	"testing"
	"time"
)

// BenchmarkIdleConnections logs 10,000 connections in over TLS, which then say
// nothing: what each adds to the resident size of the gateway's process, how many
// goroutines it has, and whether the descriptors come back. Cell, gateway and
// clients are a process each; both of the latter need 10,600 descriptors.
func BenchmarkIdleConnections(b *testing.B) {
	const connections = 10_000
	d := start(b)
	var resident, heap, stacks, routines, left []float64
	for b.Loop() {
		g := d.before(b, "QUEEN_KAFKA_MAX_CONNECTIONS=15000")
		g.client(b, "ACME", "idle", 10).end() // what a first login makes once
		_ = g.metric(b, "queen_edge_ready")   // the connection that asks for metrics
		settle(b, func() bool { return g.descriptors(b) < 40 })
		fds := g.descriptors(b)
		before, inUse, stack := memoryOf(b, g.PID, "VmRSS"), g.metric(b, "go_memstats_heap_inuse_bytes"), g.metric(b, "go_memstats_stack_inuse_bytes")
		goroutines := g.metric(b, "go_goroutines")
		clients := g.client(b, "ACME", "idle", connections)
		clients.line()
		resident = append(resident, (memoryOf(b, g.PID, "VmRSS")-before)*1024/connections)
		heap = append(heap, (g.metric(b, "go_memstats_heap_inuse_bytes")-inUse)/1024/connections)
		stacks = append(stacks, (g.metric(b, "go_memstats_stack_inuse_bytes")-stack)/1024/connections)
		routines = append(routines, (g.metric(b, "go_goroutines")-goroutines)/connections)
		clients.end()
		settle(b, func() bool { return g.descriptors(b) <= fds })
		left = append(left, float64(g.descriptors(b)-fds))
	}
	b.ReportMetric(median(resident), "KiB/conn")
	b.ReportMetric(median(heap), "heapKiB/conn")
	b.ReportMetric(median(stacks), "stackKiB/conn")
	b.ReportMetric(median(routines), "goroutines/conn")
	b.ReportMetric(median(left), "descriptors-left")
	b.ReportMetric(0, "ns/op")
}

// settle waits for what comes to be without a sign.
func settle(b *testing.B, ok func() bool) {
	b.Helper()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(20 * time.Millisecond); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			b.Fatal("it does not settle")
		}
	}
}
