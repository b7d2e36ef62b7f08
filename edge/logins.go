package edge

import (
	"net"
	"net/netip"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/brake"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/sasl"
)

// logins counts how logins ended, by mechanism. Both come from fixed sets.
type logins struct {
	counts [mechanisms][outcomeSlots]atomic.Int64
}

// The mechanisms there are, SASL off the first.
const (
	noMechanism = iota
	plain
	oauthBearer
	mechanisms
)

// outcomeSlots bounds the outcomes there can be.
const outcomeSlots = 16

func mechanismOf(m sasl.Mechanism) int {
	switch m {
	case sasl.Plain:
		return plain
	case sasl.OAuthBearer:
		return oauthBearer
	}
	return noMechanism
}

func mechanismName(i int) string { return [mechanisms]string{"none", "plain", "oauthbearer"}[i] }

func (l *logins) add(e api.LoginEnd) { l.counts[mechanismOf(e.Mechanism)][e.Outcome].Add(1) }

// tell tells every pair, so that a dashboard has them from the start.
func (l *logins) tell(tell tell) {
	for m := range mechanisms {
		for _, o := range api.LoginOutcomes() {
			tell(float64(l.counts[m][o].Load()), o.String(), mechanismName(m))
		}
	}
}

func (s *Server) brakeConfig() brake.Config {
	l := &s.cfg.Limits
	names, _ := s.cfg.Names() // errs where the configuration is not valid
	limits := func(b config.Brake) brake.Limits { return brake.Limits{Burst: b.Burst, PerSecond: b.PerSecond} }
	return brake.Config{
		Address: limits(l.AddressBrake), Lane: limits(l.LaneBrake), Process: limits(l.ProcessBrake),
		LaneOf: names.Entry, Wait: s.cfg.LoginTimeout, Known: l.BrakedKnown, Clock: s.clock, TurnedAway: s.warnOfRefusals,
	}
}

// warnOfRefusals tells of an address from which, or a name for which, so many
// logins are refused that others are turned away unchecked.
func (s *Server) warnOfRefusals(at brake.Brake, from netip.Prefix) {
	s.sampled.Warn("logins are turned away unchecked: many were refused", zap.Stringer("brake", at), zap.Stringer("from", from))
}

// clientHost is a client's address in the form Apache Kafka shows it in, without
// its port.
func clientHost(a net.Addr) string {
	if addr := clientAddr(a); addr.IsValid() {
		return "/" + addr.String()
	}
	return "/" + a.String()
}

// clientAddr is an IP address without its port; not valid: it has none.
func clientAddr(a net.Addr) netip.Addr {
	if ip, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		return ip.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// clientNet is what the brakes know a client by: its IPv4 address, or the first
// 64 bits of its IPv6 one, since whoever has one of those has them all.
func clientNet(a net.Addr) netip.Prefix {
	addr := clientAddr(a).WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // errs for more bits than there are, as of no address
	return p
}

func (s *Server) tellBraked(tell tell) {
	for at, n := range s.brakes.Counts() {
		tell(float64(n.Delayed), brake.Brake(at).String(), "delayed")
		tell(float64(n.TurnedAway), brake.Brake(at).String(), "turned_away")
	}
}

func (s *Server) tellChecks(tell tell) {
	n := s.verify.Checks()
	tell(float64(n.Listings), "login", "listing")
	tell(float64(n.Identities), "login", "identity")
	tell(float64(n.Relistings), "recheck", "listing")
	tell(float64(n.Reidentities), "recheck", "identity")
}
