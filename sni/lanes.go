package sni

import (
	"fmt"
	"net/netip"
	"strings"
)

// maxLanes bounds the names and patterns of a list; an operator with more wants
// a pattern.
const maxLanes = 10_000

// Config says which names a listener serves (B5).
type Config struct {
	// Lanes are names, and patterns of the form *.suffix. Empty: every name is
	// served, and so is a client that names none.
	Lanes []string
	// Default serves clients whose name is none of Lanes, or that name none.
	// Empty: those are refused. It is one of the names that Lanes serve.
	Default string
	// Forward makes a lane's name the Host of its calls
	// (QUEEN_KAFKA_FORWARD_SNI_HOST).
	Forward bool
}

// Names decides what a server name comes to. It never changes, and is safe for
// concurrent use. A nil Names serves every name and forwards none.
type Names struct {
	listed   []string // as given, in the spelling of Normalize
	exact    map[string]bool
	suffixes map[string]bool // of patterns, without "*."
	fallback string
	forward  bool
}

// NewNames checks a Config. An error says which entry is wrong, and why.
func NewNames(c Config) (*Names, error) {
	n := &Names{exact: map[string]bool{}, suffixes: map[string]bool{}, forward: c.Forward}
	if len(c.Lanes) > maxLanes {
		return nil, fmt.Errorf("%d names and patterns; at most %d", len(c.Lanes), maxLanes)
	}
	for _, lane := range c.Lanes {
		entry, err := ParseLane(lane)
		if err != nil {
			return nil, err
		}
		n.listed = append(n.listed, entry)
		if suffix, ok := strings.CutPrefix(entry, "*."); ok {
			n.suffixes[suffix] = true
		} else {
			n.exact[entry] = true
		}
	}
	if c.Default == "" {
		return n, nil
	}
	var ok bool
	if n.fallback, ok = Normalize(c.Default); !ok {
		return nil, fmt.Errorf("%q is not a name that a client could dial", c.Default)
	}
	if !n.serves(n.fallback) {
		return nil, fmt.Errorf("%q is not one of the names of the lanes", n.fallback)
	}
	return n, nil
}

// ParseLane gives an entry of a list of lanes its one spelling: that of
// Normalize, behind "*." where it is a pattern.
func ParseLane(text string) (string, error) {
	suffix, pattern := strings.CutPrefix(strings.TrimSpace(text), "*.")
	name, ok := Normalize(suffix)
	switch {
	case !ok && strings.ContainsFunc(suffix, func(r rune) bool { return r > 0x7f }):
		return "", fmt.Errorf("%q: write it as clients send it, in punycode (xn--…)", text)
	case !ok || !labelled(name):
		return "", fmt.Errorf("%q is neither a DNS name nor a pattern *.suffix", text)
	case pattern:
		return "*." + name, nil
	}
	return name, nil
}

// labelled reports labels of 1 to 63 bytes: a name of others is never dialled.
func labelled(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
	}
	return true
}

// Limited reports whether there is a list: without one every name is served.
func (n *Names) Limited() bool { return n != nil && len(n.listed) > 0 }

// Listed are the names and patterns, as they are compared.
func (n *Names) Listed() []string {
	if n == nil {
		return nil
	}
	return n.listed
}

// Default is the lane of clients without a known name; empty: they are refused.
func (n *Names) Default() string {
	if n == nil {
		return ""
	}
	return n.fallback
}

// Serves reports whether a client that dials host is served as that name. An
// address is none.
func (n *Names) Serves(host string) bool {
	name, ok := Normalize(host)
	return ok && (!n.Limited() || n.serves(name))
}

func (n *Names) serves(name string) bool {
	if n.exact[name] {
		return true
	}
	_, suffix, ok := strings.Cut(name, ".")
	return ok && n.suffixes[suffix] && name[0] != '.'
}

// Entry is the name or pattern of the list under which a name is served; empty:
// none. Unlike the name, it is never a stranger's text.
func (n *Names) Entry(name string) string {
	if n == nil {
		return ""
	}
	if n.exact[name] {
		return name
	}
	if _, suffix, ok := strings.Cut(name, "."); ok && n.suffixes[suffix] {
		return "*." + suffix
	}
	return ""
}

// Kind is what a hello's server name is.
type Kind uint8

// Kinds.
const (
	Known   Kind = iota // a name that is served
	Unknown             // a name that is none of the lanes
	None                // there was no name
	Address             // an IP address, which RFC 6066 does not take for a name
	Invalid             // what no DNS name is: an underscore, a foreign letter, too long
	kinds
)

// String is the metric's label.
func (k Kind) String() string {
	return [...]string{"known", "unknown", "none", "address", "invalid"}[k]
}

// Answer is what becomes of a hello for its name.
type Answer uint8

// Answers.
const (
	Served    Answer = iota // under its own name, or, without a list, under the root lane
	ByDefault               // under the default lane
	Refused                 // by the TLS alert unrecognized_name
	answers
)

// String is the metric's label.
func (a Answer) String() string { return [...]string{"served", "default", "refused"}[a] }

// Hello is what the server name of one hello comes to.
type Hello struct {
	Lane   Lane
	Name   string // that was dialled, as Normalize spells it; empty where it is none
	Kind   Kind
	Answer Answer
}

// Read decides about a hello by its server name, which is empty where it has
// none.
func (n *Names) Read(serverName string) Hello {
	name, ok := Normalize(serverName)
	h := Hello{Name: name, Kind: kindOf(serverName, ok)}
	switch {
	case !n.Limited():
		// As ever: every name is taken, and without one the root lane serves
		// (kafka-surface §4).
		if n != nil && n.forward {
			h.Lane = Lane{name: name, host: name}
		}
		return h
	case ok && n.serves(name):
	case n.fallback != "":
		h.Answer, name = ByDefault, n.fallback
	default:
		h.Answer = Refused
	}
	if ok && h.Answer != Served {
		h.Kind = Unknown
	}
	if h.Answer == Refused {
		return h
	}
	h.Lane = Lane{name: name}
	if n.forward {
		h.Lane.host = name
	}
	return h
}

func kindOf(serverName string, ok bool) Kind {
	switch text := strings.TrimSpace(serverName); {
	case ok:
		return Known
	case text == "":
		return None
	default:
		if _, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
			return Address
		}
		return Invalid
	}
}
