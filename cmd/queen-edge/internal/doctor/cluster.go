package doctor

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
)

// maxBrokers is how many of the brokers that are named get dialled.
const maxBrokers = 64

// cluster is what Metadata told.
type cluster struct {
	brokers []kmsg.MetadataResponseBroker
	leader  int32 // of partition 0 of the topic
}

// look takes the step metadata. A topic that is not there is not made.
func (d *run) look(ctx context.Context, p *peer) (cluster, bool) {
	ctx, cancel := d.step(ctx)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 7
	if d.o.Topic != "" {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &d.o.Topic
		req.Topics = []kmsg.MetadataRequestTopic{t}
	}
	got, err := p.ask(ctx, req)
	if err != nil {
		return cluster{}, d.report.Add(metadata, d.broken("Metadata", err))
	}
	resp := got.(*kmsg.MetadataResponse)
	c := cluster{brokers: resp.Brokers, leader: -1}
	f := d.judgeTopic(resp, &c)
	if len(c.brokers) == 0 {
		f = failed(causeNoBroker, "Metadata names no broker", "this is no gateway that clients can use: check what is behind the address")
	}
	return c, d.report.Add(metadata, f)
}

// judgeTopic says what was told of the topic, or of all of them.
func (d *run) judgeTopic(resp *kmsg.MetadataResponse, c *cluster) steps.Finding {
	if d.o.Topic == "" {
		return fine(fmt.Sprintf("%d broker(s), %d topic(s)", len(resp.Brokers), len(resp.Topics)))
	}
	if len(resp.Topics) != 1 {
		return failed(causeNotKafka, fmt.Sprintf("asked for one topic, told of %d", len(resp.Topics)), "check what is behind the address")
	}
	t := &resp.Topics[0]
	switch t.ErrorCode {
	case 0:
	case kerr.UnknownTopicOrPartition.Code:
		return failed(causeNoTopic, "there is no topic "+d.o.Topic, "name one that exists (--topic), or make it first; this command makes none")
	default:
		return refusedWith("Metadata for "+d.o.Topic, t.ErrorCode, "read")
	}
	for i := range t.Partitions {
		if t.Partitions[i].Partition == 0 {
			c.leader = t.Partitions[i].Leader
		}
	}
	return fine(fmt.Sprintf("%d broker(s); %s has %d partition(s)", len(resp.Brokers), d.o.Topic, len(t.Partitions)))
}

// reachBrokers takes the step advertised, once for each broker: clients leave
// the bootstrap connection and dial what they were told.
func (d *run) reachBrokers(ctx context.Context, c cluster) bool {
	all := true
	for i := range c.brokers[:min(len(c.brokers), maxBrokers)] {
		b := &c.brokers[i]
		a := address{b.Host, strconv.Itoa(int(b.Port))}
		f := d.reachBroker(ctx, b.NodeID, a)
		f.About = fmt.Sprintf("broker %d at %s", b.NodeID, a)
		all = d.report.Add(advertised, f) && all
	}
	return all
}

func (d *run) reachBroker(ctx context.Context, id int32, a address) steps.Finding {
	var worst steps.Finding
	p, ok := d.reach(ctx, a, func(k steps.Kind, f steps.Finding) bool {
		if f.Status == steps.Failed || f.Status == steps.Warning && worst.Status == "" {
			worst, worst.At, worst.Seen = f, k.Name, "at "+k.Name+": "+f.Seen
		}
		return f.Status != steps.Failed
	})
	if !ok {
		worst.Next += "; the address is QUEEN_KAFKA_ADVERTISED_ADDR of the gateway: it has to be right for clients, from where they are"
		return worst
	}
	if old := d.conns[id]; old != nil {
		old.close()
	}
	d.conns[id] = p
	switch {
	case isLoopback(a.host) && !d.local:
		return warned(causeLoopback, "reached, but "+a.host+" is another machine for every client",
			"set QUEEN_KAFKA_ADVERTISED_ADDR to what clients dial from where they are")
	case worst.Status == steps.Warning:
		return worst
	}
	return fine("reached at " + p.RemoteAddr().String())
}

// broker is the connection to the broker of an id, or else to any; one that an
// answer is missing on is made anew.
func (d *run) broker(ctx context.Context, id int32) *peer {
	p := d.conns[id]
	for other := range d.conns {
		if p == nil {
			id, p = other, d.conns[other]
		}
	}
	if !p.spoilt {
		return p
	}
	fresh, ok := d.reach(ctx, p.at, func(_ steps.Kind, f steps.Finding) bool { return f.Status != steps.Failed })
	if !ok {
		return p // asking it says what is wrong
	}
	p.close()
	d.conns[id] = fresh
	return fresh
}
