package proxy

import "net/http"

// listGroups lists what Kafka consumer groups have committed, a row for each
// group and queue, as a bare array (cell-http §3.10; that the route wraps
// nothing around it is [unknown]).
func (p *Proxy) listGroups(c *call) *refusal {
	groups, err := p.broker.Groups(c.tenant())
	if err != nil {
		return p.failed(c, "consumer groups", err)
	}
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
		a.RawStr(`,"storage":"segments","subscriptionMode":null,"subscriptionTimestamp":null,` +
			`"subscriptionCreatedAt":null,"conflation":false,"kind":"kafka"}`)
		a.flushIfFull()
	}
	a.ArrEnd()
	a.finish()
	return nil
}
