package api

// CreateTopics (19), versions 2–7 (KIP-4, KIP-464, KIP-516, KIP-525, KIP-599). One result
// per entry, in their order; a name that stands twice is refused each time (42)
// and made not at all. A width above 0 is declared and kept in the topic's
// record; 0 and −1 leave it to the default. Any replication factor is taken and
// reported as 1; assignments are refused (39). At most 100 topics are made by
// one request, the rest gets 89, below version 6 7. A throttled cell is 89 or 7
// alike. Version 7 tells the id of what was made; where nothing is (validate_only)
// it is zero.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/topicconf"
)

// throttleVersion is the first of CreateTopics that knows 89 (KIP-599).
const throttleVersion = 6

func (h *Handlers) createTopics(ctx context.Context, call Call, req *kmsg.CreateTopicsRequest) (*kmsg.CreateTopicsResponse, error) {
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	f := creating{h: h, call: call, req: req, resp: resp}
	f.check()
	f.create(ctx)
	return resp, nil
}

// creating is one request under way.
type creating struct {
	h     *Handlers
	call  Call
	req   *kmsg.CreateTopicsRequest
	resp  *kmsg.CreateTopicsResponse
	specs []catalog.Spec // by entry; no name: refused already
}

// check refuses what needs no look at the cell.
func (f *creating) check() {
	n := len(f.req.Topics)
	f.resp.Topics, f.specs = make([]kmsg.CreateTopicsResponseTopic, n), make([]catalog.Spec, n)
	again := repeated(f.req.Topics, func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic })
	for i := range f.req.Topics {
		t, r := &f.req.Topics[i], &f.resp.Topics[i]
		r.Default()
		r.Topic, r.NumPartitions, r.ReplicationFactor = t.Topic, -1, -1
		if o, ok := f.spec(t, again[t.Topic], &f.specs[i]); !ok {
			f.answer(i, o)
		}
	}
}

func (f *creating) spec(t *kmsg.CreateTopicsRequestTopic, again bool, into *catalog.Spec) (outcome, bool) {
	switch {
	case again:
		return refusal(kerr.InvalidRequest, sayTwice), false
	case !catalog.Legal(t.Topic) || catalog.Reserved(t.Topic):
		return refusal(kerr.InvalidTopicException, sayIllegal), false
	case len(t.ReplicaAssignment) > 0:
		return refusal(kerr.InvalidReplicaAssignment, sayAssignment), false
	}
	changes := make([]topicconf.Change, len(t.Configs))
	for i := range t.Configs {
		changes[i] = topicconf.Change{Name: t.Configs[i].Name, Value: t.Configs[i].Value}
	}
	values, err := topicconf.Values{}.Apply(changes)
	if err != nil {
		return createCodes.adminOutcome(err), false
	}
	*into = catalog.Spec{Name: t.Topic, Partitions: max(t.NumPartitions, 0), Values: values}
	return outcome{}, true
}

// create makes what is left, having read the listing past the cache once. After
// a call that the cell could not answer the rest is not tried.
func (f *creating) create(ctx context.Context) {
	left := 0
	for i := range f.specs {
		if f.specs[i].Name != "" {
			left++
		}
	}
	if left == 0 {
		return
	}
	list, err := f.h.cfg.Catalog.Fresh(ctx, f.call.Scope)
	made, tried := false, 0
	for i, spec := range f.specs {
		if spec.Name == "" {
			continue
		}
		if catalog.Unable(err) || list == nil {
			f.answer(i, f.failed(err))
			continue
		}
		if o, ok := f.judge(list, i, tried); !ok {
			f.answer(i, o)
			continue
		}
		tried++
		topic := f.h.cfg.Catalog.Made(spec)
		if !f.req.ValidateOnly {
			made = true
			if topic, err = f.h.cfg.Catalog.Create(ctx, f.call.Scope, spec, list); err != nil {
				f.answer(i, f.failed(err))
				continue
			}
		}
		f.succeed(i, topic, spec.Values)
	}
	if made {
		f.h.cfg.Catalog.Invalidate(f.call.Scope)
	}
}

// judge refuses what the listing or a limit forbids.
func (f *creating) judge(list *catalog.Listing, i, tried int) (outcome, bool) {
	spec, most := f.specs[i], f.h.cfg.Admin.MaxPartitions
	if _, exists := list.Find(spec.Name); exists {
		return refusal(kerr.TopicAlreadyExists, fmt.Sprintf("Topic '%s' already exists.", spec.Name)), false
	}
	asked := f.req.Topics[i].NumPartitions
	switch {
	case asked < -1:
		return refusal(kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value."), false
	case asked > most:
		return refusal(kerr.InvalidPartitions, fmt.Sprintf("%d partitions are more than the %d a topic may have here (QUEEN_KAFKA_MAX_PARTITIONS).", asked, most)), false
	case tried >= f.h.cfg.Admin.Creates:
		o := refusal(f.throttled(), sayLater)
		o.throttle = laterThrottle
		return o, false
	case f.req.ValidateOnly && !mayAdmin(f.call.Scope):
		return refusal(kerr.TopicAuthorizationFailed, sayNotAdmin), false
	}
	return outcome{}, true
}

func (f *creating) throttled() *kerr.Error {
	if f.req.Version >= throttleVersion {
		return kerr.ThrottlingQuotaExceeded
	}
	return kerr.RequestTimedOut
}

func (f *creating) failed(err error) outcome {
	o := createCodes.adminOutcome(err)
	if kindOf(err) == throttled {
		o.code = f.throttled().Code
	}
	return o
}

func (f *creating) answer(i int, o outcome) {
	r := &f.resp.Topics[i]
	r.ErrorCode, r.ErrorMessage = o.code, o.message
	f.resp.ThrottleMillis = max(f.resp.ThrottleMillis, o.throttle)
	f.specs[i].Name = ""
}

// succeed tells what was made, from version 5 on: the width that Metadata shows,
// and the configs.
func (f *creating) succeed(i int, topic catalog.Topic, values topicconf.Values) {
	if f.req.Version < 5 {
		return
	}
	r := &f.resp.Topics[i]
	r.TopicID, r.NumPartitions, r.ReplicationFactor = topic.ID, topic.Width, 1
	for _, row := range topicRows(values, true) {
		if row.Source == kmsg.ConfigSourceDefaultConfig && row.Name == topicconf.RetentionMs {
			continue // nothing was asked
		}
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.Source = row.Name, row.Value, int8(row.Source)
		r.Configs = append(r.Configs, c)
	}
}
