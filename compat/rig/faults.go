package rig

import (
	"testing"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
)

// WithFaults puts a proxy that can inject faults between gateway and cell; p is
// set when the rig has started.
func WithFaults(tb testing.TB, p **inject.Proxy) func(*Options) {
	tb.Helper()
	return func(o *Options) {
		o.CellAt = func(cell string) string {
			proxy, err := inject.Start(anyPort, cell, inject.Plan{}, nil)
			check(tb, err)
			tb.Cleanup(func() { check(tb, proxy.Close()) }) // each its own: a gateway that starts again gets another
			*p = proxy
			return proxy.URL
		}
	}
}

// LoseAnswer has the next call of a path done and its answer lost with the
// connection. The call may come only after it; the function it gives waits for
// the loss.
func LoseAnswer(tb testing.TB, p *inject.Proxy, path string) (lost func()) {
	tb.Helper()
	before := p.Fired(inject.CutAfter)
	check(tb, p.Add(inject.Rule{Kind: inject.CutAfter, Route: path, Count: 1}))
	return func() {
		tb.Helper()
		Eventually(tb, "the loss of an answer", func() bool { return p.Fired(inject.CutAfter) > before })
	}
}
