package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/topicconf"
)

// topicEdits is a request that changes topics, one after the other: the listing
// that it reads once, and what keeps the rest from being tried.
type topicEdits struct {
	h     *Handlers
	call  Call
	dry   bool
	read  bool
	list  *catalog.Listing
	err   error // of the listing, or of a call after which the rest is not tried
	tried int
}

// find looks a topic up; ok is false where there is none, and o then the answer.
func (e *topicEdits) find(ctx context.Context, name, unknown string) (topic catalog.Topic, o outcome, ok bool) {
	missing := refusal(kerr.UnknownTopicOrPartition, unknown)
	if !catalog.Legal(name) || catalog.Reserved(name) {
		return topic, missing, false
	}
	if !e.read {
		e.list, e.err = e.h.cfg.Catalog.Fresh(ctx, e.call.Scope)
		e.read = true
	}
	if e.err != nil {
		return topic, configCodes.of(e.err), false
	}
	topic, ok = e.list.Find(name)
	return topic, missing, ok
}

// alter makes one edit, and remembers a failure that will meet the others too.
func (e *topicEdits) alter(ctx context.Context, topic catalog.Topic, edit func(catalog.Stored) (topicconf.Record, bool, error)) outcome {
	err := e.h.cfg.Catalog.Alter(ctx, e.call.Scope, topic, edit, e.dry)
	if err == nil {
		return outcome{}
	}
	if catalog.Unable(err) {
		e.err = err
	}
	return configCodes.adminOutcome(err)
}
