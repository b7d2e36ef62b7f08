package tlsconf

import (
	"strings"

	"github.com/queen-mq/queen-edge/sni"
)

// ladder is the pairs there are, for choosing one. It never changes.
type ladder struct {
	named map[string]*Pair // by name, and by *.suffix
	other *Pair            // the default pair; nil: none
}

// choose is the pair for a hello: of the name that was dialled, its wildcard's,
// then the same of the lane that serves it, then the default pair; nil: none.
func (l *ladder) choose(h sni.Hello) *Pair {
	for _, name := range [...]string{h.Name, h.Lane.Advertised()} {
		if p := l.under(name); p != nil {
			return p
		}
	}
	return l.other
}

func (l *ladder) under(name string) *Pair {
	if name == "" {
		return nil
	}
	if p := l.named[name]; p != nil {
		return p
	}
	_, suffix, _ := strings.Cut(name, ".")
	return l.named["*."+suffix]
}

// wildcardPrefix begins the file name of a pair for *.suffix: a star in a file
// name means trouble in every shell.
const wildcardPrefix = "_wildcard."

// pairName is the name, or *.suffix, that a file name without its ending stands
// for.
func pairName(stem string) (string, bool) {
	if strings.HasPrefix(stem, "*") {
		return "", false // one spelling, or two pairs would be for one name
	}
	if suffix, ok := strings.CutPrefix(stem, wildcardPrefix); ok {
		stem = "*." + suffix
	}
	name, err := sni.ParseLane(stem)
	return name, err == nil
}
