package check

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// atTheCell takes the steps that ask the cell.
func (r *run) atTheCell(ctx context.Context) {
	if r.bad["QUEEN_URL"] {
		r.report.Skip("QUEEN_URL is not legal", cellStep, tokenStep, hostStep, kvStep)
		return
	}
	client, err := proxyclient.New(proxyclient.Config{URL: r.o.Config.URL, ConnectTimeout: r.o.Timeout, CallTimeout: r.o.Timeout})
	if err != nil {
		r.report.Add(cellStep, failed(causeBadVariable, "QUEEN_URL: "+err.Error(), "correct it"))
		r.report.Skip("QUEEN_URL is not legal", tokenStep, hostStep, kvStep)
		return
	}
	defer client.Close()
	r.client = client
	r.verify = tenancy.NewVerifier[[]proxyclient.Queue](client, tenancy.VerifierConfig{Clock: r.o.Now})
	if !r.report.Add(cellStep, r.askAnonymously(ctx)) {
		r.report.Skip("the cell cannot be asked", tokenStep, hostStep, kvStep)
		return
	}
	r.credentials(ctx)
}

// askAnonymously asks for the queue listing without a credential, so that no
// token is sent to what may be no cell. A cell refuses that in its own words.
func (r *run) askAnonymously(ctx context.Context) steps.Finding {
	queues, err := r.client.ListQueuesAs(ctx, tenancy.NewClaim(tenancy.Secret{}, ""))
	if err == nil {
		return fine(fmt.Sprintf("%s answers as a cell that asks for no credential: %d queues", r.o.Config.URL, len(queues)))
	}
	e, ok := proxyclient.AsError(err)
	if !ok {
		return failed(causeBroken, err.Error(), "try again")
	}
	switch e.Kind {
	case proxyclient.KindTransport:
		return r.unreached(e)
	case proxyclient.KindStatus:
		return r.refusedAnonymously(e)
	}
	return r.noCell("an answer that is no queue listing: " + e.Error())
}

func (r *run) noCell(seen string) steps.Finding {
	return failed(causeNotACell, r.o.Config.URL+" gives "+seen, "check QUEEN_URL: the cell's proxy is meant, with the path it is served under, and something else answers")
}

func (r *run) refusedAnonymously(e *proxyclient.Error) steps.Finding {
	switch {
	case e.Status >= 300 && e.Status < 400:
		return failed(causeNotACell, r.o.Config.URL+" redirects (HTTP "+fmt.Sprint(e.Status)+")", "set QUEEN_URL to where it leads: redirects are not followed, and a token must not be sent through one")
	case e.Code == "" || e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		return r.noCell(e.WireText())
	case e.Status >= 500:
		return failed(causeUnwell, "the cell answers "+e.WireText(), "the cell's proxy is reached, and what is behind it is not well: look there")
	}
	return fine(r.o.Config.URL + " answers as a cell")
}

// unreached names why there was no answer.
func (r *run) unreached(e *proxyclient.Error) steps.Finding {
	at := r.o.Config.URL + ": "
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(e, &dns) && dns.IsNotFound:
		return failed(causeNoSuchName, at+"the name has no address here: "+dns.Err, "check the spelling of QUEEN_URL, and the DNS that this machine asks")
	case errors.As(e, &certificate):
		return failed(causeUntrusted, at+"its certificate is not trusted: "+certificate.Err.Error(), untrustedNext(certificate.Err))
	case errors.As(e, &record):
		return failed(causeNotHTTPS, at+"it speaks no TLS", "write http:// if it is meant to be in the clear: tokens then are, too")
	case errors.Is(e, syscall.ECONNREFUSED):
		return failed(causeRefused, at+"connection refused", "nothing listens there: check host and port of QUEEN_URL, and that the cell runs")
	case e.Timeout():
		return failed(causeTimeout, at+"no answer within "+r.o.Timeout.String(), "look at firewalls on the way, and at the cell")
	}
	return failed(causeBroken, at+e.Error(), "look at the network between, and at the cell")
}

func untrustedNext(err error) string {
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return "add its authority to the system's, or name its file in SSL_CERT_FILE, for this command and for the gateway"
	case errors.As(err, &other):
		return "write QUEEN_URL with a name that the certificate has"
	}
	return "the cell's certificate has to be renewed"
}
