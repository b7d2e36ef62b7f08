package check

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/tlsconf"
)

// soon is how long before its end a certificate is worth a warning.
const soon = 30 * 24 * time.Hour

// certificates takes the step certificate for every pair there is.
func (r *run) certificates() {
	c := &r.o.Config
	if !c.TLS() {
		r.report.Add(certificate, skipped("no certificate is set: the listener speaks no TLS"))
		return
	}
	if err := tlsconf.CheckTickets(c.TLSTickets); err != nil {
		r.report.Add(certificate, failed(causeBadTickets, err.Error(), "make a key with `openssl rand -base64 32`, a line each"))
	}
	var entries []tlsconf.Entry
	if c.TLSDir != "" {
		var err error
		if entries, err = tlsconf.Entries(c.TLSDir); err != nil {
			r.report.Add(certificate, pairFailed(err))
		}
	}
	// Each name is looked for in the pair that its clients are shown.
	shown := map[string][]string{}
	for _, name := range r.dialled() {
		of := ""
		for _, e := range entries {
			if e.Name == name || of == "" && strings.HasPrefix(e.Name, "*.") && sameSuffix(e.Name, name) {
				of = e.Name
			}
		}
		shown[of] = append(shown[of], name)
	}
	for _, e := range entries {
		r.pair(e.CertFile, e.Load, shown[e.Name])
	}
	switch {
	case c.TLSCert != "" && c.TLSKey != "":
		r.pair(c.TLSCert, func() (*tlsconf.Pair, error) { return tlsconf.Load(c.TLSCert, c.TLSKey) }, shown[""])
	case r.bad["QUEEN_KAFKA_TLS_CERT"] || r.bad["QUEEN_KAFKA_TLS_KEY"]:
		r.report.Add(certificate, skipped("half of the pair is not set"))
	case len(entries) == 0:
		r.report.Add(certificate, failed(causeMissingFile, "there is no certificate: the folder holds no pair <name>.crt and <name>.key",
			"put one there, or set QUEEN_KAFKA_TLS_CERT and QUEEN_KAFKA_TLS_KEY"))
	default:
		for _, name := range shown[""] {
			f := failed(causeWrongName, "there is no certificate for "+name+", so its clients are refused", "put a pair for it into the folder")
			f.About = c.TLSDir
			r.report.Add(certificate, f)
		}
	}
}

// sameSuffix reports a name that *.suffix stands for.
func sameSuffix(pattern, name string) bool {
	_, suffix, ok := strings.Cut(name, ".")
	return ok && pattern == "*."+suffix
}

// dialled are the names that clients dial, as far as they are known here: what
// stands behind a pattern of the lanes is not.
func (r *run) dialled() []string {
	names := slices.Clone(r.o.Hosts)
	add := func(name string) {
		if name != "" && !strings.HasPrefix(name, "*.") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, lane := range r.o.Config.Lanes {
		add(lane)
	}
	add(r.o.Config.DefaultLane)
	if host := r.o.Config.Advertised.Host; host != "" && !slices.Contains(names, host) {
		names = append([]string{host}, names...)
	}
	return names
}

// pair looks at one pair: everything that is wrong with it is told.
func (r *run) pair(about string, load func() (*tlsconf.Pair, error), names []string) {
	add := func(f steps.Finding) bool {
		f.About = about
		return r.report.Add(certificate, f)
	}
	p, err := load()
	if err != nil {
		add(pairFailed(err))
		return
	}
	all := true
	for _, f := range r.judge(p, names) {
		all = add(f) && all
	}
	if all {
		leaf := p.Chain()[0]
		add(fine(fmt.Sprintf("for %v, until %s (%d days); clients have to trust %s",
			p.Names(), leaf.NotAfter.UTC().Format(time.DateOnly), int(leaf.NotAfter.Sub(r.o.Now()).Hours()/24), top(p.Chain()))))
	}
}

// top is the authority that a chain leads to.
func top(chain []*x509.Certificate) string {
	issuer := chain[len(chain)-1].Issuer
	if issuer.CommonName != "" {
		return fmt.Sprintf("%q", issuer.CommonName)
	}
	return fmt.Sprintf("%q", issuer.String())
}

func pairFailed(err error) steps.Finding {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed(causeMissingFile, err.Error(), "put the file there, or correct the path")
	case errors.Is(err, tlsconf.ErrChainOrder):
		return failed(causeChainOrder, err.Error(), "put the listener's own certificate first in the file, then what signed it")
	case errors.Is(err, tlsconf.ErrMismatch):
		return failed(causeMismatch, err.Error(), "use the key that the certificate was made for")
	}
	return failed(causeBadPair, err.Error(), "make the file a PEM file that this process may read")
}

// judge is what is wrong with a pair that loads.
func (r *run) judge(p *tlsconf.Pair, names []string) []steps.Finding {
	var out []steps.Finding
	chain := p.Chain()
	for i, c := range chain {
		out = append(out, r.inTime(c, i)...)
		if i+1 < len(chain) && c.CheckSignatureFrom(chain[i+1]) != nil {
			out = append(out, failed(causeChainOrder, fmt.Sprintf("certificate %d of the file is not signed by the one after it", i+1),
				"order the file: the listener's own certificate first, then what signed it, then what signed that"))
		}
	}
	leaf := chain[0]
	if len(leaf.ExtKeyUsage) > 0 && !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) && !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny) {
		out = append(out, failed(causeNotServer, "the certificate may not be a server's (extended key usage)", "make one with the usage serverAuth"))
	}
	for _, name := range names {
		if p.Covers(name) != nil {
			out = append(out, failed(causeWrongName, fmt.Sprintf("the certificate is for %v, and clients dial %s", p.Names(), name),
				"make a certificate that has the name as a subject alternative name, or advertise a name that it has"))
		}
	}
	return out
}

func (r *run) inTime(c *x509.Certificate, i int) []steps.Finding {
	now := r.o.Now()
	which := fmt.Sprintf("certificate %d of the file", i+1)
	switch {
	case now.Before(c.NotBefore):
		return []steps.Finding{failed(causeNotYet, which+" is valid from "+c.NotBefore.UTC().Format(time.RFC3339)+" on", "check this machine's clock, and the one's that made it")}
	case now.After(c.NotAfter):
		return []steps.Finding{failed(causeExpired, which+" has expired on "+c.NotAfter.UTC().Format(time.RFC3339), "renew it")}
	case c.NotAfter.Sub(now) < soon:
		return []steps.Finding{warned(causeExpiresSoon, which+" expires on "+c.NotAfter.UTC().Format(time.RFC3339), "renew it")}
	}
	return nil
}
