package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/topicconf"
)

// alteration is one resource of a request that changes configs.
type alteration struct {
	resource
	changes []topicconf.Change
	whole   bool // what is not named goes back to its default
}

// altering is such a request under way.
type altering struct{ topicEdits }

// alter makes one alteration. Everything a resource is told happens, or nothing.
func (a *altering) alter(ctx context.Context, it alteration) outcome {
	switch it.kind {
	case kmsg.ConfigResourceTypeTopic:
		return a.topic(ctx, it)
	case kmsg.ConfigResourceTypeBroker:
		if a.h.ownNode(it.name) {
			return refusal(kerr.InvalidConfig, "The broker's configs are settings of the service: none can be changed by clients.")
		}
		return refusal(kerr.InvalidRequest, a.h.sayOwnNode())
	}
	return refusal(kerr.InvalidRequest, "Only configs of topics can be changed.")
}

func (a *altering) topic(ctx context.Context, it alteration) outcome {
	topic, o, ok := a.find(ctx, it.name, sayNoTopic)
	if !ok {
		return o
	}
	if a.dry && !mayAdmin(a.call.Scope) {
		return refusal(kerr.TopicAuthorizationFailed, sayNotAdmin)
	}
	if a.tried++; a.tried > a.h.cfg.Admin.Alters {
		o = refusal(kerr.RequestTimedOut, sayLater)
		o.throttle = laterThrottle
		return o
	}
	return a.topicEdits.alter(ctx, topic, it.edit)
}

// edit changes a topic's record. The width it declares stays as it is.
func (it alteration) edit(st catalog.Stored) (next topicconf.Record, ok bool, err error) {
	if !st.Tracked() {
		why := sayUntracked
		if st.Version > 0 && !st.Declared() {
			why = sayStale
		}
		return next, false, &topicconf.Refusal{Text: why}
	}
	from := st.Kafka
	if it.whole {
		from = topicconf.Values{}
	}
	values, err := from.Apply(it.changes)
	if err != nil || values.Equal(st.Kafka) {
		return next, false, err
	}
	next = st.Record
	next.Set, next.Kafka = next.Set.Next(values), values
	return next, true, nil
}
