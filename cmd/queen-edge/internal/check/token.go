package check

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tenancy"
)

// verdict is what the cell makes of the token under one Host.
type verdict uint8

const (
	accepted     verdict = iota
	unknownToken         // 401
	otherCluster         // the key is known, and the Host is another cluster's
	unknownHost          // 421
	suspended
	missingScope
	unsure
)

// answer is a verdict with what it was made of.
type answer struct {
	host  string // empty: QUEEN_URL's own
	says  verdict
	scope tenancy.Scope // accepted
	err   error         // all others
}

// credentials takes the steps token, host and kv.
func (r *run) credentials(ctx context.Context) {
	if r.o.Token.IsZero() && len(r.o.Config.SASL) > 0 {
		r.report.Skip("no token was given (--token-file, QUEEN_KAFKA_CHECK_TOKEN): clients log in with theirs, and only one of those can tell", tokenStep, hostStep, kvStep)
		return
	}
	answers := r.askAll(ctx)
	r.report.Add(tokenStep, r.judgeToken(ctx, answers))
	r.judgeHosts(answers)
	r.keysAndValues(ctx, answers)
}

// hosts are the names that calls to the cell carry as their Host.
func (r *run) hosts() []string {
	if !r.o.Config.ForwardSNIHost {
		return []string{""}
	}
	names, err := r.o.Config.Names()
	if err != nil { // told of as a variable: each name is looked at as if it were a lane
		names, _ = sni.NewNames(sni.Config{Forward: true})
	}
	var hosts []string
	for _, name := range r.dialled() {
		hello := names.Read(name)
		if hello.Answer == sni.Refused {
			continue // no client comes in by it
		}
		if host := hello.Lane.Host(); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func (r *run) askAll(ctx context.Context) []answer {
	var answers []answer
	for _, host := range r.hosts() {
		answers = append(answers, r.ask(ctx, host))
	}
	return answers
}

// ask proves the token under a Host, as a login does.
func (r *run) ask(ctx context.Context, host string) answer {
	claim := tenancy.NewClaim(r.o.Token, host)
	proof, err := r.verify.Verify(ctx, claim)
	a := answer{host: host, scope: proof.Scope, err: err}
	e, ok := proxyclient.AsError(err)
	switch {
	case err == nil:
	case !ok || e.Kind != proxyclient.KindStatus:
		a.says = unsure
	case e.Status == http.StatusUnauthorized:
		a.says = unknownToken
	case e.Status == http.StatusMisdirectedRequest:
		a.says = unknownHost
	case e.Status != http.StatusForbidden:
		a.says = unsure
	case strings.Contains(e.Text, "key/cluster mismatch"):
		a.says = otherCluster
	case !r.verify.Proven(ctx, claim): // on a dedicated name the cell says "suspended" before it looks at the key
		a.says = unknownToken
	case e.Code == "cluster_suspended":
		a.says = suspended
	default:
		a.says = missingScope
	}
	return a
}

// judgeToken says what is known of the token, whatever Host it was asked under.
func (r *run) judgeToken(ctx context.Context, answers []answer) steps.Finding {
	if !slices.ContainsFunc(answers, func(a answer) bool { return a.says != unknownHost }) {
		answers = []answer{r.ask(ctx, "")} // a name that the cell serves nobody under says nothing of the token
	}
	for _, says := range []verdict{accepted, suspended, missingScope, otherCluster, unknownToken, unsure} {
		if i := slices.IndexFunc(answers, func(a answer) bool { return a.says == says }); i >= 0 {
			return r.tokenFinding(answers[i])
		}
	}
	return skipped("the cell serves no cluster under its own name, so the token could not be asked about")
}

func (r *run) tokenFinding(a answer) steps.Finding {
	switch a.says {
	case accepted:
		return r.acceptedFinding(a.scope)
	case otherCluster:
		return fine("the cell knows the token")
	case suspended:
		return failed(causeSuspended, "the token's cluster is suspended: "+wire(a.err), "whoever runs the cell has suspended it; ask them")
	case missingScope:
		return failed(causeMissingScope, "the token may not list queues: "+wire(a.err), "give it the scope read: no Kafka client logs in without it")
	case unknownToken:
		return failed(causeBadToken, "the cell does not know the token: "+wire(a.err), "check that it is whole, not revoked or expired, and of this cell")
	}
	return r.unsureFinding(a.err)
}

func (r *run) unsureFinding(err error) steps.Finding {
	if e, ok := proxyclient.AsError(err); ok && e.Kind == proxyclient.KindTransport {
		return r.unreached(e)
	} else if ok && e.Status == http.StatusTooManyRequests {
		return failed(causeRateLimited, "the cell answers "+wire(err), "the cluster's rate is used up: try again later")
	}
	return failed(causeUnwell, "the cell answers "+wire(err), "look at the cell, and try again")
}

// acceptedFinding names the scopes: what is missing fails nothing here, since
// many a token is meant to do one thing only.
func (r *run) acceptedFinding(s tenancy.Scope) steps.Finding {
	seen := "the cell knows it"
	if r.o.Token.IsZero() {
		seen = "no token is needed"
	}
	if s.Resolved() {
		seen += ", as one of cluster " + s.ID().String()
	}
	if rights := s.Rights(); rights.Known {
		seen += "; it may " + strings.Join(scopesOf(rights), ", ")
	}
	if end := s.Expires(); !end.IsZero() {
		seen += "; it ends on " + end.UTC().Format(time.RFC3339)
		if end.Sub(r.o.Now()) < soon {
			return warned(causeExpiresSoon, seen, "make a new one in time")
		}
	}
	return fine(seen)
}

func scopesOf(r tenancy.Rights) []string {
	var list []string
	for _, s := range []struct {
		name string
		has  bool
	}{{"produce", r.Produce}, {"consume", r.Consume}, {"admin", r.Admin}, {"read", r.Read}} {
		if s.has {
			list = append(list, s.name)
		}
	}
	return list
}

// judgeHosts takes the step host, once for each name that is forwarded.
func (r *run) judgeHosts(answers []answer) {
	for _, a := range answers {
		f := r.hostFinding(a)
		if f.About = a.host; a.host == "" {
			f.About = "QUEEN_URL's own name"
		}
		r.report.Add(hostStep, f)
	}
	if len(answers) == 0 {
		r.report.Skip("no name is known that clients dial", hostStep)
	}
}

func (r *run) hostFinding(a answer) steps.Finding {
	next := "forward no name (QUEEN_KAFKA_FORWARD_SNI_HOST=false), or dial and advertise the name of the token's cluster, or have the cell list this one as shared"
	if a.host == "" {
		next = "set QUEEN_KAFKA_FORWARD_SNI_HOST=true and dial the cluster's name, or have the cell list this one as shared"
	}
	switch a.says {
	case accepted:
		return fine("the cell takes it for this token")
	case otherCluster:
		return failed(causeOtherCluster, "the cell refuses it for this token: "+wire(a.err)+"; the first label names a cluster, and the token is another's", next)
	case unknownHost:
		return failed(causeUnknownHost, "the cell serves nobody under it: "+wire(a.err), next)
	}
	return skipped("the token was not taken")
}

// wire is a refusal in the cell's words.
func wire(err error) string {
	if e, ok := proxyclient.AsError(err); ok {
		return e.WireText()
	}
	return fmt.Sprint(err)
}
