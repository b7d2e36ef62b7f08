// Package check looks at a gateway's configuration before it is put to use: the
// variables, the certificates, the cell, a token, and the two things that
// nothing tells an operator about until every request fails: whether the cell
// takes the forwarded Host for the token's cluster, and whether it has granted
// that cluster its keys and values.
package check

import (
	"context"
	"time"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Options are what Run needs.
type Options struct {
	Config  config.Config
	Err     error          // of reading Config; what has a problem there is not looked at
	Token   tenancy.Secret // a tenant's; zero: QUEEN_TOKEN
	Hosts   []string       // names clients dial beside the advertised one
	Timeout time.Duration  // of each step
	Now     func() time.Time
	Told    func(steps.Step)
}

// The steps, in the order they are taken.
var (
	configuration = steps.Kind{Name: "configuration", Exit: 30, Does: "every `QUEEN_*` variable; all problems at once"}
	certificate   = steps.Kind{Name: "certificate", Exit: 31, Does: "certificate and key belong together, the chain is in order and in its time, and covers the names clients dial; every pair of the folder, and the ticket keys"}
	cellStep      = steps.Kind{Name: "cell", Exit: 32, Does: "`QUEEN_URL` is reached, its certificate is trusted, and it answers as a cell"}
	tokenStep     = steps.Kind{Name: "token", Exit: 33, Does: "the cell knows the token, and it may log in"}
	hostStep      = steps.Kind{Name: "host", Exit: 34, Does: "the cell takes the Host that is forwarded, for the token's cluster"}
	kvStep        = steps.Kind{Name: "kv", Exit: 35, Does: "the cell lets the token's cluster write keys and values: offsets, groups and transactions need it"}
)

// Kinds are the steps in the order they are taken.
func Kinds() []steps.Kind {
	return []steps.Kind{configuration, certificate, cellStep, tokenStep, hostStep, kvStep}
}

// Causes, as JSON shows them. They are a promise to scripts.
const (
	causeBadVariable  = "bad_variable"
	causeRisky        = "risky"
	causeMissingFile  = "missing_file"
	causeBadPair      = "bad_pair"
	causeMismatch     = "mismatched_pair"
	causeChainOrder   = "chain_order"
	causeExpired      = "expired"
	causeExpiresSoon  = "expires_soon"
	causeNotYet       = "not_yet_valid"
	causeNotServer    = "not_for_servers"
	causeWrongName    = "wrong_name"
	causeBadTickets   = "bad_ticket_keys"
	causeNoSuchName   = "no_such_name"
	causeRefused      = "refused"
	causeTimeout      = "timeout"
	causeBroken       = "broken"
	causeUntrusted    = "untrusted"
	causeNotHTTPS     = "not_https"
	causeNotACell     = "not_a_cell"
	causeUnwell       = "cell_unavailable"
	causeBadToken     = "bad_token"
	causeSuspended    = "suspended"
	causeMissingScope = "missing_scope"
	causeOtherCluster = "other_cluster"
	causeUnknownHost  = "unknown_host"
	causeNotGranted   = "kv_not_granted"
	causeFull         = "kv_full"
	causeRateLimited  = "rate_limited"
	causeWrote        = "condition_ignored"
)

// run is one examination.
type run struct {
	o      Options
	bad    map[string]bool // variables that have a problem
	report *steps.Report
	client *proxyclient.Client
	verify *tenancy.Verifier[[]proxyclient.Queue]
}

// Run takes all steps that can be taken: one that fails stops only those that
// need what it looked for. At the cell it reads, and tries one write whose
// condition cannot hold.
func Run(ctx context.Context, o Options) *steps.Report {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Token.IsZero() && !badVariables(o.Err)["QUEEN_TOKEN"] {
		o.Token = o.Config.Token
	}
	r := &run{o: o, bad: badVariables(o.Err)}
	target := o.Config.URL
	if r.bad["QUEEN_URL"] {
		target = "QUEEN_*"
	}
	r.report = steps.New("check", target, nil, o.Told)
	r.variables()
	r.certificates()
	r.atTheCell(ctx)
	return r.report
}

// badVariables are the variables that an error of the configuration names.
func badVariables(err error) map[string]bool {
	bad := map[string]bool{}
	for _, p := range config.Problems(err) {
		bad[p.Variable] = true
	}
	return bad
}

// variables takes the step configuration: a finding for each problem.
func (r *run) variables() {
	problems := config.Problems(r.o.Err)
	for _, p := range problems {
		f := failed(causeBadVariable, p.Error(), "correct it: docs/CONFIGURATION.md has the legal values")
		f.About = p.Variable
		r.report.Add(configuration, f)
	}
	if r.o.Err == nil {
		for _, w := range r.o.Config.Warnings() {
			r.report.Add(configuration, steps.Finding{Status: steps.Warning, Cause: causeRisky, Seen: w})
		}
		r.report.Add(configuration, fine("every variable is legal; clients are told to dial "+r.o.Config.Advertised.String()))
	}
	if r.o.Err != nil && len(problems) == 0 {
		r.report.Add(configuration, failed(causeBadVariable, r.o.Err.Error(), ""))
	}
}

func failed(cause, seen, next string) steps.Finding {
	return steps.Finding{Status: steps.Failed, Cause: cause, Seen: seen, Next: next}
}

func warned(cause, seen, next string) steps.Finding {
	return steps.Finding{Status: steps.Warning, Cause: cause, Seen: seen, Next: next}
}

func skipped(why string) steps.Finding { return steps.Finding{Status: steps.Skipped, Seen: why} }

func fine(seen string) steps.Finding { return steps.Finding{Status: steps.OK, Seen: seen} }
