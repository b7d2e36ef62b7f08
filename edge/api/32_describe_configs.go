package api

// DescribeConfigs (32), versions 1–4 (KIP-133, KIP-226, KIP-569). Topics and the
// one broker; a null or an empty list of keys means all. Nothing is sensitive
// and nothing has synonyms. A topic that was not made through a gateway shows
// defaults, read-only; where its record cannot be read, that too. A resource
// that is asked for twice is answered once. Gap: loggers and groups (42).

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
)

// describedBytes is about what a described resource takes in memory until its
// answer is written.
const describedBytes = 4 << 10

func (h *Handlers) describeConfigs(ctx context.Context, call Call, req *kmsg.DescribeConfigsRequest) (*kmsg.DescribeConfigsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	d := describingConfigs{h: h, call: call, req: req, resp: resp}
	d.open()
	d.topics(ctx)
	return resp, nil
}

// describingConfigs is one request under way.
type describingConfigs struct {
	h      *Handlers
	call   Call
	req    *kmsg.DescribeConfigsRequest
	resp   *kmsg.DescribeConfigsResponse
	keys   [][]string // of each answer, what was asked; empty: all
	names  []string   // topics
	answer []int      // of each topic, its answer
}

type resource struct {
	kind kmsg.ConfigResourceType
	name string
}

// open makes the answers and fills in those that need no call.
func (d *describingConfigs) open() {
	seen := make(map[resource]bool, min(len(d.req.Resources), d.h.cfg.Admin.Describes))
	for i := range d.req.Resources {
		r := &d.req.Resources[i]
		if id := (resource{r.ResourceType, r.ResourceName}); len(seen) < d.h.cfg.Admin.Describes {
			if seen[id] {
				continue
			}
			seen[id] = true
		}
		a := kmsg.NewDescribeConfigsResponseResource()
		a.ResourceType, a.ResourceName = r.ResourceType, r.ResourceName
		n := len(d.resp.Resources)
		d.resp.Resources, d.keys = append(d.resp.Resources, a), append(d.keys, r.ConfigNames)
		switch {
		case n >= d.h.cfg.Admin.Describes || !d.call.Conn.answer.cover(int64(n+1)*describedBytes):
			d.refuse(n, refusal(kerr.RequestTimedOut, "Too many resources in one request; ask again for the rest."))
		case r.ResourceType == kmsg.ConfigResourceTypeBroker:
			if !d.h.ownNode(r.ResourceName) {
				d.refuse(n, refusal(kerr.InvalidRequest, d.h.sayOwnNode()))
				continue
			}
			d.fill(n, d.h.brokerRows())
		case r.ResourceType == kmsg.ConfigResourceTypeTopic:
			d.names, d.answer = append(d.names, r.ResourceName), append(d.answer, n)
		default:
			d.refuse(n, refusal(kerr.InvalidRequest, "Only topics and the broker have configs here."))
		}
	}
}

func (d *describingConfigs) topics(ctx context.Context) {
	if len(d.names) == 0 {
		return
	}
	list, err := d.h.cfg.Catalog.Get(ctx, d.call.Scope)
	var found []catalog.Topic
	var at []int
	for i, name := range d.names {
		if !catalog.Legal(name) || catalog.Reserved(name) {
			d.refuse(d.answer[i], refusal(kerr.UnknownTopicOrPartition, sayNoTopic))
			continue
		}
		if err != nil {
			d.refuse(d.answer[i], configCodes.of(err))
			continue
		}
		t, ok := list.Find(name)
		if !ok {
			d.refuse(d.answer[i], refusal(kerr.UnknownTopicOrPartition, sayNoTopic))
			continue
		}
		found, at = append(found, t), append(at, d.answer[i])
	}
	for i, st := range d.h.cfg.Catalog.Records(ctx, d.call.Scope, found) {
		if !st.Tracked() {
			d.fill(at[i], topicRows(nil, false))
			continue
		}
		d.fill(at[i], topicRows(st.Kafka, true))
	}
}

// fill gives an answer the rows that were asked for, as its version shows them.
func (d *describingConfigs) fill(n int, rows []configRow) {
	if keys := d.keys[n]; len(keys) > 0 {
		rows = slices.DeleteFunc(rows, func(r configRow) bool { return !slices.Contains(keys, r.Name) })
	}
	for i := range rows {
		if !d.req.IncludeDocumentation {
			rows[i].Documentation = nil
		}
	}
	d.resp.Resources[n].Configs = rows
}

func (d *describingConfigs) refuse(n int, o outcome) {
	a := &d.resp.Resources[n]
	a.ErrorCode, a.ErrorMessage = o.code, o.message
	d.resp.ThrottleMillis = max(d.resp.ThrottleMillis, o.throttle)
}
