// Package allowed is the control: it uses tenancy as it is meant to be used, so
// it must compile. Were it broken, the other programs would fail for no reason.
package allowed

import "github.com/queen-mq/queen-edge/tenancy"

type groups struct {
	byName tenancy.Map[string, int]
	recent *tenancy.LRU[int64, string]
}

func use(s tenancy.Scope, g *groups) (int, string) {
	n, _ := g.byName.Get(tenancy.KeyOf(s, "orders"))
	text, _ := g.recent.Get(tenancy.KeyOf(s, int64(7)))
	return n, text
}

func claim(text string) tenancy.Claim { return tenancy.NewClaim(tenancy.NewSecret(text), "") }
