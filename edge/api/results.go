package api

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/proxyclient"
)

// Bounds of throttle_time_ms (kafka-surface §12). Clients give a request up
// after 30 s, so no answer asks for more.
const (
	minThrottle = time.Second
	maxThrottle = 30 * time.Second
)

// outcome is a cell's failure in one API's terms.
type outcome struct {
	code     int16
	throttle int32   // ms
	message  *string // for responses that have room for it
}

// failureKind sorts the cell's failures the way every table of cell-http §6
// does.
type failureKind uint8

const (
	noAnswer   failureKind = iota // transport, 408
	gateway                       // 502, 503, 504
	throttled                     // 429
	forbidden                     // 401, 403
	notFound                      // 404
	tooLarge                      // 413
	unread                        // an answer of keys and values that leaves some out, or no room to ask for them
	unexpected                    // the rest, and bodies that do not line up
)

func kindOf(err error) failureKind {
	e, ok := proxyclient.AsError(err)
	if !ok {
		if errors.Is(err, offsets.ErrUnread) || errors.Is(err, offsets.ErrFull) {
			return unread
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return noAnswer
		}
		return unexpected
	}
	if e.Kind == proxyclient.KindTransport {
		return noAnswer
	}
	if e.Kind != proxyclient.KindStatus {
		return unexpected
	}
	switch e.Status {
	case 401, 403:
		return forbidden
	case 404:
		return notFound
	case 408:
		return noAnswer
	case 413:
		return tooLarge
	case 429:
		return throttled
	case 502, 503, 504:
		return gateway
	}
	return unexpected
}

// codes is one API's column of cell-http §6.
type codes map[failureKind]*kerr.Error

var produceCodes = codes{
	noAnswer:   kerr.RequestTimedOut,
	gateway:    kerr.LeaderNotAvailable,
	throttled:  kerr.RequestTimedOut,
	forbidden:  kerr.TopicAuthorizationFailed,
	notFound:   kerr.UnknownTopicOrPartition,
	tooLarge:   kerr.MessageTooLarge,
	unread:     kerr.UnknownServerError,
	unexpected: kerr.UnknownServerError,
}

// readCodes are those of Fetch and ListOffsets.
var readCodes = codes{
	noAnswer:   kerr.NotLeaderForPartition,
	gateway:    kerr.NotLeaderForPartition,
	throttled:  kerr.NotLeaderForPartition,
	forbidden:  kerr.TopicAuthorizationFailed,
	notFound:   kerr.UnknownTopicOrPartition,
	tooLarge:   kerr.UnknownServerError,
	unread:     kerr.UnknownServerError,
	unexpected: kerr.UnknownServerError,
}

// groupCodes are those of committed offsets and of the index of groups. None
// throttles: a sleeping commit is a sleeping poll loop (kafka-surface §12).
var groupCodes = codes{
	noAnswer:   kerr.CoordinatorNotAvailable,
	gateway:    kerr.CoordinatorNotAvailable,
	throttled:  kerr.CoordinatorNotAvailable,
	forbidden:  kerr.GroupAuthorizationFailed,
	notFound:   kerr.UnknownServerError,
	tooLarge:   kerr.UnknownServerError,
	unread:     kerr.CoordinatorLoadInProgress,
	unexpected: kerr.UnknownServerError,
}

// positionCodes are those of OffsetFetch. What passes is 14 there, not 15: a Java
// consumer up to 3.6 asks again after a 14 and throws out of poll for a 15.
var positionCodes = codes{
	noAnswer:   kerr.CoordinatorLoadInProgress,
	gateway:    kerr.CoordinatorLoadInProgress,
	throttled:  kerr.CoordinatorLoadInProgress,
	forbidden:  kerr.GroupAuthorizationFailed,
	notFound:   kerr.UnknownServerError,
	tooLarge:   kerr.UnknownServerError,
	unread:     kerr.CoordinatorLoadInProgress,
	unexpected: kerr.UnknownServerError,
}

// createCodes are those of CreateTopics below version 6, which has 89 for a
// throttle.
var createCodes = codes{
	noAnswer:   kerr.RequestTimedOut,
	gateway:    kerr.RequestTimedOut,
	throttled:  kerr.RequestTimedOut,
	forbidden:  kerr.TopicAuthorizationFailed,
	notFound:   kerr.UnknownServerError,
	tooLarge:   kerr.UnknownServerError,
	unread:     kerr.UnknownServerError,
	unexpected: kerr.UnknownServerError,
}

// configCodes are those of the APIs that read or change configs and widths.
var configCodes = codes{
	noAnswer:   kerr.RequestTimedOut,
	gateway:    kerr.RequestTimedOut,
	throttled:  kerr.RequestTimedOut,
	forbidden:  kerr.TopicAuthorizationFailed,
	notFound:   kerr.RequestTimedOut,
	tooLarge:   kerr.RequestTimedOut,
	unread:     kerr.RequestTimedOut,
	unexpected: kerr.RequestTimedOut,
}

// of translates a failure.
func (c codes) of(err error) outcome {
	o := outcome{code: c[kindOf(err)].Code, throttle: throttleOf(err)}
	if e, ok := proxyclient.AsError(err); ok {
		text := e.WireText()
		o.message = &text
	}
	return o
}

// throttleOf is the throttle time of a failure in ms: only a 429 has one.
func throttleOf(err error) int32 {
	e, ok := proxyclient.AsError(err)
	if !ok || e.Kind != proxyclient.KindStatus || e.Status != 429 {
		return 0
	}
	return int32(min(max(e.RetryAfter, minThrottle), maxThrottle).Milliseconds())
}

func textPtr(s string) *string { return &s }
