package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/topicconf"
	"github.com/queen-mq/queen-edge/tenancy"
)

// laterThrottle is asked of a client whose request had more topics than are done
// at once, in ms.
const laterThrottle = 1000

// Sentences for clients. Those that tools compare are Kafka's own.
const (
	sayTwice       = "Duplicate topic name."
	sayNoTopic     = "This server does not host this topic-partition."
	sayNoID        = "This server does not host this topic ID."
	sayNameOrID    = "A topic is named by its name or by its id, not by both or neither."
	sayIllegal     = "The topic name is not legal: 1 to 249 of letters, digits, dot, underscore and dash, and not beginning with two underscores."
	sayAssignment  = "Replicas cannot be assigned: there is one logical broker."
	sayLater       = "Too many topics in one request; ask again for the rest."
	sayNotAdmin    = "operation not permitted for this credential: the token lacks the scope `admin`."
	sayUnrecorded  = "The cell has made the change, but it could not be recorded; the topic's configs can no longer be altered. "
	sayUntracked   = "The configs of this topic cannot be altered: it was not created through this service, so the settings that an alter has to repeat are not known."
	sayStale       = "The configs of this topic cannot be altered: what is recorded is of an earlier topic of the same name."
	sayResourceTwo = "Each resource must appear at most once."
)

// repeated are the names that a list has more than once.
func repeated[T any, K comparable](entries []T, name func(*T) K) map[K]bool {
	seen := make(map[K]bool, len(entries)) // true: more than once
	for i := range entries {
		n := name(&entries[i])
		_, again := seen[n]
		seen[n] = again
	}
	for n, again := range seen {
		if !again {
			delete(seen, n)
		}
	}
	return seen
}

// mayAdmin reports whether a credential is known to lack the right to
// administer topics. What is not known is the cell's to say.
func mayAdmin(s tenancy.Scope) bool {
	r := s.Rights()
	return !r.Known || r.Admin
}

// refusal is an outcome without a call.
func refusal(e *kerr.Error, text string) outcome {
	o := outcome{code: e.Code}
	if text != "" {
		o.message = &text
	}
	return o
}

// adminOutcome is a failure of the catalog in the terms of an API that changes
// topics.
func (c codes) adminOutcome(err error) outcome {
	var refused *topicconf.Refusal
	if errors.As(err, &refused) {
		if refused.Request {
			return refusal(kerr.InvalidRequest, refused.Text)
		}
		return refusal(kerr.InvalidConfig, refused.Text)
	}
	switch {
	case errors.Is(err, catalog.ErrExists):
		return refusal(kerr.TopicAlreadyExists, "")
	case errors.Is(err, catalog.ErrGone):
		return refusal(kerr.UnknownTopicOrPartition, sayNoTopic)
	}
	o := c.of(err)
	var half *catalog.Unrecorded
	if errors.As(err, &half) {
		text := sayUnrecorded
		if o.message != nil {
			text += *o.message
		}
		o.code, o.message = kerr.RequestTimedOut.Code, &text
	}
	return o
}
