package edge

import (
	"sync/atomic"

	"github.com/queen-mq/queen-edge/edge/api"
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
