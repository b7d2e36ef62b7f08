// Package doctor dials a gateway as a client would, one step after another, and
// names the step that fails. It is a client: it knows the gateway by what comes
// over the wire alone, and works from any machine that has the token.
package doctor

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Options are what Run needs.
type Options struct {
	Host      string // of the bootstrap address: a name or an IP address, without brackets
	Port      string
	Token     tenancy.Secret // zero: none, for a gateway that asks for no login
	Mechanism sasl.Mechanism
	Roots     *x509.CertPool // nil: the system's
	Plaintext bool           // no TLS
	Topic     string         // empty: nothing is produced and fetched
	Skip      []string       // of Optional
	Timeout   time.Duration  // of each step
	Told      func(steps.Step)
}

// run is one examination.
type run struct {
	o      Options
	report *steps.Report
	conns  map[int32]*peer // logged in, by broker
	local  bool            // the gateway is on this machine
}

// Run takes the steps until one fails. It writes nothing at the gateway but one
// record to Topic, and one committed offset that it takes back.
func Run(ctx context.Context, o Options) *steps.Report {
	d := &run{o: o, conns: map[int32]*peer{}}
	d.report = steps.New("doctor", address{o.Host, o.Port}.String(), scrubber(o.Token), o.Told)
	defer d.close()
	first, ok := d.reach(ctx, address{o.Host, o.Port}, d.report.Add)
	if !ok {
		d.leaveOut()
		return d.report
	}
	defer first.close()
	d.local = isLoopback(first.ip)
	seen, ok := d.look(ctx, first)
	if ok && d.reachBrokers(ctx, seen) {
		offset, written := d.produce(ctx, seen)
		d.fetch(ctx, seen, offset, written)
		d.commit(ctx)
	}
	d.leaveOut()
	return d.report
}

func (d *run) close() {
	for _, p := range d.conns {
		p.close()
	}
}

// leaveOut lists the steps that were not come to.
func (d *run) leaveOut() {
	for _, k := range Kinds() {
		if !d.came(k) {
			d.report.Skip("not come to", k)
		}
	}
}

func (d *run) came(k steps.Kind) bool {
	for _, s := range d.report.Steps {
		if s.Step == k.Name {
			return true
		}
	}
	return false
}

// step is the context of one step.
func (d *run) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.o.Timeout)
}

// failed makes the finding of a failure.
func failed(cause, seen, next string) steps.Finding {
	return steps.Finding{Status: steps.Failed, Cause: cause, Seen: seen, Next: next}
}

func warned(cause, seen, next string) steps.Finding {
	return steps.Finding{Status: steps.Warning, Cause: cause, Seen: seen, Next: next}
}

func fine(seen string) steps.Finding { return steps.Finding{Status: steps.OK, Seen: seen} }
