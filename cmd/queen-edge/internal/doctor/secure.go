package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
)

// soon is how long before its end a certificate is worth a warning.
const soon = 14 * 24 * time.Hour

// secure takes the steps tls and name: a handshake that trusts anybody, so that
// what is wrong with the certificate can be said, then the certificate. Nothing
// secret has been sent when they fail.
func (d *run) secure(ctx context.Context, p *peer, note func(steps.Kind, steps.Finding) bool) bool {
	if d.o.Plaintext {
		return note(tlsShake, steps.Finding{Status: steps.Skipped, Seen: "--plaintext: the token crosses the network in the clear"}) &&
			note(name, steps.Finding{Status: steps.Skipped, Seen: "--plaintext"})
	}
	state, err := d.handshake(ctx, p)
	switch {
	case err != nil && saysUnknownName(err):
		return note(tlsShake, fine("the peer speaks TLS")) && note(name, failed(causeUnknownName,
			"the gateway serves no name "+serverName(p.at.host)+" (TLS alert unrecognized_name)",
			"dial a name that is in QUEEN_KAFKA_LANES of the gateway, or add this one"))
	case err != nil:
		return note(tlsShake, d.handshakeFailed(ctx, p, err))
	}
	leaf := state.PeerCertificates[0]
	if !note(tlsShake, d.judgeChain(state)) {
		return false
	}
	if err := leaf.VerifyHostname(serverName(p.at.host)); err != nil {
		return note(name, failed(causeWrongName, "the certificate is for "+namesOf(leaf)+", not for "+p.at.host,
			"dial one of those names, or serve a certificate for "+p.at.host))
	}
	return note(name, fine("the certificate is for "+p.at.host))
}

// serverName is a host as TLS compares it.
func serverName(host string) string { return strings.TrimSuffix(host, ".") }

func (d *run) handshake(ctx context.Context, p *peer) (tls.ConnectionState, error) {
	ctx, cancel := d.step(ctx)
	defer cancel()
	conn := tls.Client(p.Conn, &tls.Config{ServerName: serverName(p.at.host), MinVersion: tls.VersionTLS12, InsecureSkipVerify: true})
	if err := conn.HandshakeContext(ctx); err != nil {
		return tls.ConnectionState{}, because(ctx, err)
	}
	p.Conn = conn
	return conn.ConnectionState(), nil
}

// saysUnknownName reports the alert by which a server refuses a name (RFC 6066
// §3). The library has no type for it.
func saysUnknownName(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "unrecognized name")
}

// handshakeFailed says why there was no handshake. A peer that answers without
// TLS is asked once more, in the clear and without a secret.
func (d *run) handshakeFailed(ctx context.Context, p *peer, err error) steps.Finding {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return failed(causeNotTLS, "the peer does not speak TLS on this port", notTLSNext)
	case causeOf(err) == causeTimeout:
		return failed(causeTimeout, "no TLS handshake within "+d.o.Timeout.String(), "something takes connections there and says nothing: look at the balancer, and whether the port is the gateway's")
	case isClosed(err) && d.speaksPlainKafka(ctx, p):
		return failed(causeNotTLS, "the port speaks Kafka without TLS", notTLSNext)
	case isClosed(err):
		return failed(causeClosed, "the peer closed the connection during the TLS handshake",
			"look at the gateway's log for a closed connection; a balancer without a healthy gateway behind it does the same")
	}
	return failed(causeHandshake, "the TLS handshake failed: "+words(err), "look at what stands between: the gateway takes TLS 1.2 and 1.3")
}

const notTLSNext = "set QUEEN_KAFKA_TLS_CERT and QUEEN_KAFKA_TLS_KEY at the gateway, or dial its TLS port; a client (and this command, with --plaintext) can also do without TLS, and then sends its token in the clear"

// second is how long a second look at a peer may take that has failed already.
const second = 3 * time.Second

// speaksPlainKafka asks the same address for ApiVersions without TLS.
func (d *run) speaksPlainKafka(ctx context.Context, p *peer) bool {
	ctx, cancel := context.WithTimeout(ctx, second)
	defer cancel()
	plain, f := d.connect(ctx, p.at, []string{p.ip})
	if f.Status == steps.Failed {
		return false
	}
	defer plain.close()
	return d.hello(ctx, plain).Status == steps.OK
}

// speaksTLS tries a handshake at the same address.
func (d *run) speaksTLS(ctx context.Context, p *peer) bool {
	ctx, cancel := context.WithTimeout(ctx, second)
	defer cancel()
	secure, f := d.connect(ctx, p.at, []string{p.ip})
	if f.Status == steps.Failed {
		return false
	}
	defer func() { secure.close() }() // of what the handshake made of it
	_, err := d.handshake(ctx, secure)
	return err == nil || saysUnknownName(err)
}

// judgeChain looks at everything of a certificate but its name.
func (d *run) judgeChain(state tls.ConnectionState) steps.Finding {
	leaf, now := state.PeerCertificates[0], time.Now()
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: d.o.Roots, Intermediates: between, CurrentTime: now})
	if err != nil {
		return chainFailed(state.PeerCertificates, now, err)
	}
	left := leaf.NotAfter.Sub(now)
	seen := fmt.Sprintf("%s; a certificate by %s, until %s (%d days)", tls.VersionName(state.Version), issuer(leaf), day(leaf.NotAfter), int(left.Hours()/24))
	if left < soon {
		return warned(causeExpiresSoon, seen, "renew the certificate")
	}
	return fine(seen)
}

func chainFailed(chain []*x509.Certificate, now time.Time, err error) steps.Finding {
	leaf := chain[0]
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case now.Before(leaf.NotBefore):
		return failed(causeNotYet, "the certificate is valid from "+leaf.NotBefore.UTC().Format(time.RFC3339)+" on, and here it is "+now.UTC().Format(time.RFC3339),
			"check the clocks of this machine and of the one that made the certificate")
	case now.After(leaf.NotAfter):
		return failed(causeExpired, "the certificate has expired on "+leaf.NotAfter.UTC().Format(time.RFC3339), "renew the certificate at the gateway")
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return failed(causeNotServer, "the certificate may not be a server's (extended key usage)", "make one with the usage serverAuth")
	case errors.As(err, &unknown):
		return failed(causeAuthority, fmt.Sprintf("the certificate is by %s, which is not trusted here; the gateway sent %d certificate(s)", issuer(leaf), len(chain)), authorityNext(chain))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return failed(causeExpired, "a certificate above the gateway's own has expired", "renew the chain at the gateway")
	}
	return failed(causeCertificate, "the certificate does not hold: "+err.Error(), "make a new one")
}

// authorityNext tells a missing intermediate from a missing root: a chain that
// ends in a certificate by somebody else lacks something, at one of the sides.
func authorityNext(chain []*x509.Certificate) string {
	next := "give this command and the clients the authority's certificate (--ca FILE here)"
	last := chain[len(chain)-1]
	if string(last.RawIssuer) != string(last.RawSubject) {
		next += "; if that is there, the gateway's file lacks the intermediate " + issuer(last)
	}
	return next
}

func issuer(c *x509.Certificate) string {
	if c.Issuer.CommonName != "" {
		return fmt.Sprintf("%q", c.Issuer.CommonName)
	}
	return fmt.Sprintf("%q", c.Issuer.String())
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// namesOf lists what a certificate is for.
func namesOf(c *x509.Certificate) string {
	const most = 10
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name at all"
	}
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}

// isLoopback reports a host that means another machine on every machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		host = strings.ToLower(serverName(host))
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	return ip.IsLoopback() || ip.IsUnspecified()
}
