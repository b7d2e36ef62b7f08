package proxy

import (
	"fmt"
	"net/http"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// registry is the names a cluster has, as far as the proxy has admitted or
// looked them up (cell-http §5.5). A configure takes the place of a partition
// called Default, whether or not anything is ever pushed there. It begins empty
// at each start, and is filled from the broker as names come by; what nobody
// pushed to is forgotten.
type registry struct {
	queues map[string]map[string]bool
}

// place is one partition of one queue.
type place struct{ queue, partition string }

// inventory is what admission asks the broker.
type inventory interface {
	Queues(t broker.Tenant) []broker.Queue
	PartitionSizes(t broker.Tenant, queue string) (map[string]int64, bool)
}

// knows reports whether a place has been admitted.
func (r *registry) knows(pl place) bool { return r.queues[pl.queue][pl.partition] }

// admit holds a place against the plan and keeps it. added says that it was
// not there before.
func (r *registry) admit(pl place, l *control.Limits, t broker.Tenant, inv inventory) (added bool, f *refusal) {
	if r.knows(pl) {
		return false, nil
	}
	names, known := r.queues[pl.queue]
	sizes, exists := inv.PartitionSizes(t, pl.queue)
	if !known && !exists && l.MaxQueues.Exceeded(r.count(t, inv)+1) {
		return false, overRegistry("queue", l.MaxQueues)
	}
	if names == nil {
		names = make(map[string]bool, len(sizes)+1)
	}
	for name := range sizes {
		names[name] = true
	}
	if names[pl.partition] {
		r.put(pl.queue, names)
		return false, nil
	}
	if l.MaxPartitionsPerQueue.Exceeded(int64(len(names)) + 1) {
		return false, overRegistry("partition", l.MaxPartitionsPerQueue)
	}
	names[pl.partition] = true
	r.put(pl.queue, names)
	return true, nil
}

func (r *registry) put(queue string, names map[string]bool) {
	if r.queues == nil {
		r.queues = make(map[string]map[string]bool)
	}
	r.queues[queue] = names
}

// count is how many queues there are: the broker's, and those admitted whose
// creation is still on its way there.
func (r *registry) count(t broker.Tenant, inv inventory) int64 {
	listed := inv.Queues(t)
	n := int64(len(listed) + len(r.queues))
	for i := range listed {
		if _, both := r.queues[listed[i].Name]; both {
			n--
		}
	}
	return n
}

// release gives places back that came to nothing.
func (r *registry) release(places []place) {
	for _, pl := range places {
		delete(r.queues[pl.queue], pl.partition)
		if len(r.queues[pl.queue]) == 0 {
			delete(r.queues, pl.queue)
		}
	}
}

// forget drops a queue that was deleted.
func (r *registry) forget(queue string) { delete(r.queues, queue) }

func overRegistry(what string, limit control.Limit) *refusal {
	return refuse(http.StatusForbidden, "quota_exceeded", fmt.Sprintf("%s limit reached (%s)", what, limit))
}

// admission is what a request was admitted to, to be given back if the broker
// does not follow.
type admission struct {
	account *account
	places  []place
}

// admitItems admits the places of a push. A call that is refused keeps none.
func (p *Proxy) admitItems(c *call, items []broker.PushItem) (admission, *refusal) {
	a := admission{account: p.account(c.cluster)}
	if !c.cluster.Limits.MaxQueues.Bounded() && !c.cluster.Limits.MaxPartitionsPerQueue.Bounded() {
		return a, nil
	}
	a.account.mu.Lock()
	defer a.account.mu.Unlock()
	var last place
	for i := range items {
		pl := place{items[i].Queue, items[i].Partition}
		if pl == last {
			continue
		}
		last = pl
		if f := p.admitLocked(c, &a, pl); f != nil {
			return admission{}, f
		}
	}
	return a, nil
}

// admitQueue admits what a configure makes.
func (p *Proxy) admitQueue(c *call, queue string) (admission, *refusal) {
	a := admission{account: p.account(c.cluster)}
	a.account.mu.Lock()
	defer a.account.mu.Unlock()
	// Only a new queue is counted: a change of settings makes nothing.
	if _, exists := p.broker.PartitionSizes(c.tenant(), queue); exists {
		return a, nil
	}
	if f := p.admitLocked(c, &a, place{queue, defaultPartition}); f != nil {
		return admission{}, f
	}
	return a, nil
}

// admitLocked admits one place more, or gives back all of a's.
func (p *Proxy) admitLocked(c *call, a *admission, pl place) *refusal {
	r := &a.account.registry
	added, f := r.admit(pl, &c.cluster.Limits, c.tenant(), p.broker)
	if f != nil {
		if f = p.unlessShadow(c, f); f != nil {
			r.release(a.places)
		}
		return f
	}
	if added {
		a.places = append(a.places, pl)
	}
	return nil
}

// undo gives the places back.
func (a *admission) undo() {
	if len(a.places) == 0 {
		return
	}
	a.account.mu.Lock()
	defer a.account.mu.Unlock()
	a.account.registry.release(a.places)
}

// forgetQueue makes room again after a delete.
func (p *Proxy) forgetQueue(c *call, queue string) {
	a := p.account(c.cluster)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.registry.forget(queue)
}
