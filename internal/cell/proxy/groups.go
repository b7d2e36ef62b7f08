package proxy

import (
	"net/http"
	"slices"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// listGroups lists what consumer groups have committed, a row for each
// group and queue, as a bare array (cell-http §3.10; that the route wraps
// nothing around it is [unknown]). The path may ask for one group, or for those
// that lag.
func (p *Proxy) listGroups(c *call) *refusal {
	groups, err := p.broker.Groups(c.tenant())
	if err != nil {
		return p.failed(c, "consumer groups", err)
	}
	groups = slices.DeleteFunc(groups, func(g broker.GroupRow) bool {
		return c.target.group != "" && g.Group != c.target.group || c.target.lagging && g.TotalLag == 0
	})
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.ArrStart()
	for i := range groups {
		if i > 0 {
			a.Comma()
		}
		g := &groups[i]
		a.RawStr(`{"name":`)
		a.Str(g.Group)
		a.RawStr(`,"queueName":`)
		a.Str(g.Queue)
		a.RawStr(`,"topics":[`)
		a.Str(g.Queue)
		a.RawStr(`],"members":`)
		a.int(int64(g.Partitions))
		a.RawStr(`,"partitionCursors":`)
		a.int(int64(g.Partitions))
		a.RawStr(`,"totalLag":`)
		a.int(g.TotalLag)
		a.RawStr(`,"partitionsWithLag":`)
		a.int(int64(g.PartitionsWithLag))
		a.RawStr(`,"storage":"segments"`)
		a.subscription(g)
		a.RawStr(`}`)
		a.flushIfFull()
	}
	a.ArrEnd()
	a.finish()
	return nil
}

// subscription renders what only a native group has, and its kind.
func (a *answer) subscription(g *broker.GroupRow) {
	if !g.Native {
		a.RawStr(`,"subscriptionMode":null,"subscriptionTimestamp":null,"subscriptionCreatedAt":null,"conflation":false,"kind":"kafka"`)
		return
	}
	if g.Since.IsZero() {
		a.RawStr(`,"subscriptionMode":"all","subscriptionTimestamp":null`)
	} else {
		a.RawStr(`,"subscriptionMode":"new","subscriptionTimestamp":`)
		a.time(g.Since, millis)
	}
	a.RawStr(`,"subscriptionCreatedAt":`)
	a.time(g.CreatedAt, millis)
	a.RawStr(`,"conflation":`)
	a.Bool(g.Conflates)
	a.RawStr(`,"kind":"queen"`)
}
