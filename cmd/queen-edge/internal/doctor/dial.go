package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
)

// address is a host and a port as a client is told them.
type address struct{ host, port string }

func (a address) String() string { return net.JoinHostPort(a.host, a.port) }

// maxAddresses is how many addresses of one name are tried.
const maxAddresses = 8

// reach takes the steps from a name to a connection that is logged in. note is
// told of each, and says whether to go on.
func (d *run) reach(ctx context.Context, a address, note func(steps.Kind, steps.Finding) bool) (*peer, bool) {
	addrs, f := d.resolve(ctx, a.host)
	if !note(dns, f) {
		return nil, false
	}
	p, f := d.connect(ctx, a, addrs)
	if !note(tcp, f) {
		return nil, false
	}
	ok := d.secure(ctx, p, note)
	ok = ok && note(kafka, d.hello(ctx, p))
	ok = ok && d.login(ctx, p, note)
	if !ok {
		p.close()
		return nil, false
	}
	return p, true
}

func (d *run) resolve(ctx context.Context, host string) ([]string, steps.Finding) {
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{host}, fine("an address: nothing to look up")
	}
	ctx, cancel := d.step(ctx)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err == nil {
		return addrs[:min(len(addrs), maxAddresses)], fine(host + " is " + strings.Join(addrs, ", "))
	}
	var no *net.DNSError
	switch {
	case ctx.Err() != nil || errors.As(err, &no) && no.IsTimeout:
		return nil, failed(causeTimeout, "no answer about "+host+" within "+d.o.Timeout.String(),
			"look at this machine's resolver: the name may be fine elsewhere")
	case no != nil && no.IsNotFound:
		return nil, failed(causeNoSuchName, host+" has no address here: "+no.Err,
			"check the spelling; if it is right, the name is missing in the DNS that this machine asks")
	}
	return nil, failed(causeBroken, "looking up "+host+" failed: "+err.Error(), "look at this machine's resolver")
}

// connect takes the first address that answers, as clients do.
func (d *run) connect(ctx context.Context, a address, addrs []string) (*peer, steps.Finding) {
	var dead []string
	cause := ""
	for _, ip := range addrs {
		ctx, cancel := context.WithTimeout(ctx, d.o.Timeout/time.Duration(len(addrs)))
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(ip, a.port))
		cancel()
		if err != nil {
			cause = causeOf(err)
			dead = append(dead, fmt.Sprintf("%s: %s", net.JoinHostPort(ip, a.port), words(err)))
			continue
		}
		p := &peer{Conn: nc, at: a, ip: ip}
		if len(dead) > 0 {
			return p, warned(cause, "connected to "+nc.RemoteAddr().String()+", but not to "+strings.Join(dead, "; "),
				"clients that try that address first are slow, or fail: take it out of the DNS, or open it")
		}
		return p, fine("connected to " + nc.RemoteAddr().String())
	}
	return nil, failed(cause, "no connection to "+strings.Join(dead, "; "), connectNext(cause))
}

func connectNext(cause string) string {
	switch cause {
	case causeRefused:
		return "nothing listens there: check the port, that the gateway runs, and that QUEEN_KAFKA_ADDR is not a loopback address"
	case causeTimeout:
		return "packets are dropped on the way: look at firewalls, security groups and the balancer's targets"
	case causeUnreachable:
		return "there is no route from here: check the address, and that this network may reach it"
	}
	return "check the address and the network between"
}

// causeOf names how a connection failed.
func causeOf(err error) string {
	var ne net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return causeRefused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return causeTimeout
	case errors.Is(err, context.Canceled):
		return causeInterrupted
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return causeUnreachable
	case isClosed(err):
		return causeClosed
	}
	return causeBroken
}

// words are what an operator reads of a network error: the innermost of it,
// without the addresses around.
func words(err error) string {
	switch causeOf(err) {
	case causeRefused:
		return "connection refused"
	case causeTimeout:
		return "no answer in time"
	case causeClosed:
		return "the peer closed the connection"
	case causeInterrupted:
		return "interrupted"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}
