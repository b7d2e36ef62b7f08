package api

import (
	"context"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/edge/catalog"
)

// readable are a tenant's topics as Fetch and ListOffsets see them.
type readable struct {
	list     *catalog.Listing // nil: it could not be read
	code     int16            // of what is named by id then; 0: ask later
	throttle int32            // ms
}

// readableTopic is one of them, or the code of all its partitions.
type readableTopic struct {
	name  string
	width int32
	code  int16
	later bool // nothing can be said now, and that is no error
}

// readableTopics looks topics up for reading.
func (h *Handlers) readableTopics(ctx context.Context, call Call) readable {
	list, err := h.cfg.Catalog.Get(ctx, call.Scope)
	if err == nil {
		return readable{list: list}
	}
	r := readable{code: kerr.NotLeaderForPartition.Code, throttle: throttleOf(err)}
	switch kindOf(err) {
	case forbidden:
		r.code = kerr.TopicAuthorizationFailed.Code
	case throttled:
		r.code = 0
	}
	return r
}

// named is a topic by name. A listing that cannot be read costs only the width
// check, never the fetch: every legal name may then be read.
func (r readable) named(name string) readableTopic {
	unknown := readableTopic{code: kerr.UnknownTopicOrPartition.Code}
	if !catalog.Legal(name) || catalog.Reserved(name) {
		return unknown
	}
	if r.list == nil {
		return readableTopic{name: name, width: math.MaxInt32}
	}
	t, ok := r.list.Find(name)
	if !ok {
		return unknown
	}
	return readableTopic{name: name, width: t.Width}
}

// identified is a topic by id. Without a listing nobody knows its name, and the
// client is to ask again.
func (r readable) identified(id catalog.TopicID) readableTopic {
	if r.list == nil {
		return readableTopic{code: r.code, later: r.code == 0}
	}
	t, ok := r.list.FindID(id)
	if !ok {
		return readableTopic{code: kerr.UnknownTopicID.Code}
	}
	return readableTopic{name: t.Name, width: t.Width}
}
