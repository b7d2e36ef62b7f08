package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// Route is what a method and path ask for.
type Route uint8

// The routes of cell-http §2.6 and §3. RouteOther is a path the proxy knows
// the class of and the broker has no answer for.
const (
	RouteBlocked Route = iota
	RouteHealth
	RouteMe
	RouteQueues
	RouteQueue
	RouteSizes
	RouteConfigure
	RouteDelete
	RoutePush
	RouteTransaction
	RouteFetch
	RouteOffsets
	RouteKV
	RouteGroups
	RoutePop
	RouteAck
	RouteLease
	RouteDead
	RouteDepth
	RouteGroupDelete
	RouteGroupSeek
	RouteGroupSubscription
	RouteOther
	numRoutes
)

// String names the route for counters and logs.
func (r Route) String() string {
	return [numRoutes]string{
		"blocked", "healthz", "auth_me", "queues", "queue", "sizes", "configure", "delete",
		"push", "transaction", "fetch", "fetch_offsets", "kv", "consumer_groups",
		"pop", "ack", "lease", "dlq", "depth", "group_delete", "group_seek", "group_subscription", "other",
	}[r]
}

// class is what a route needs of a key (cell-http §5.2).
type class uint8

const (
	classBlocked class = iota
	classOwn           // answered by the proxy itself
	classProduce
	classConsume
	classQueueAdmin
	classRead
	classGated // behind a plan feature
)

// feature is the plan feature a gated route hides behind.
type feature uint8

const (
	noFeature feature = iota
	featureKV
	featureTimers
	featureEphemeral
	featureStreams
	featureTraces
)

// on reports whether a plan has the feature.
func (f feature) on(have control.Features) bool {
	switch f {
	case featureKV:
		return have.KV
	case featureTimers:
		return have.Timers
	case featureEphemeral:
		return have.Ephemeral
	case featureStreams:
		return have.Streams
	case featureTraces:
		return have.Traces
	default:
		return true
	}
}

// target is a classified request.
type target struct {
	route   Route
	class   class
	feature feature

	// Decoded, where the path names one.
	queue, partition, group, lease string
	lagging                        bool // of groups: only those that have something to read
}

// classify is the route table. It sees method and path only, so that it can
// precede authentication; path is still percent-encoded, which keeps an
// encoded slash inside its segment.
func classify(method, path string) target {
	switch path {
	case "/healthz":
		return target{route: RouteHealth, class: classOwn}
	case "/auth/me":
		if method == http.MethodGet || method == http.MethodHead {
			return target{route: RouteMe, class: classOwn}
		}
		return target{}
	}
	rest, api := strings.CutPrefix(path, "/api/v1/")
	if !api {
		return target{}
	}
	if t := classifyWrites(method, rest); t.class != classBlocked {
		return t
	}
	if t := classifyResources(method, rest); t.class != classBlocked {
		return t
	}
	if t := classifyNative(method, rest); t.class != classBlocked {
		return t
	}
	return classifyUnserved(method, rest)
}

// classifyWrites knows the routes that carry records, keys or settings.
func classifyWrites(method, rest string) target {
	if rest == "configure" {
		if method == http.MethodPost {
			return target{route: RouteConfigure, class: classQueueAdmin}
		}
		return target{route: RouteOther, class: classQueueAdmin}
	}
	if method != http.MethodPost {
		return target{}
	}
	switch rest {
	case "push":
		return target{route: RoutePush, class: classProduce}
	case "transaction":
		return target{route: RouteTransaction, class: classProduce}
	case "fetch":
		return target{route: RouteFetch, class: classConsume}
	case "fetch/offsets":
		return target{route: RouteOffsets, class: classConsume}
	case "kv", "kv/":
		// What the batch holds decides, see classifyBatch.
		return target{route: RouteKV, class: classGated, feature: featureKV}
	default:
		return target{}
	}
}

// classifyResources knows resources and what is below it.
func classifyResources(method, rest string) target {
	below, ok := under(rest, "resources")
	if !ok || below == "tenant" || below == "quota" {
		return target{}
	}
	other := target{route: RouteOther, class: classRead}
	reading := method == http.MethodGet || method == http.MethodHead
	if below == "queues" {
		if reading {
			return target{route: RouteQueues, class: classRead}
		}
		return other
	}
	segment, ok := strings.CutPrefix(below, "queues/")
	if !ok {
		return other
	}
	if method == http.MethodDelete {
		return named(target{route: RouteDelete, class: classQueueAdmin}, segment)
	}
	if !reading {
		return other
	}
	if queue, sizes := strings.CutSuffix(segment, "/sizes"); sizes {
		return named(target{route: RouteSizes, class: classRead}, queue)
	}
	if queue, depth := strings.CutSuffix(segment, "/depth"); depth {
		return named(target{route: RouteDepth, class: classRead}, queue)
	}
	return named(target{route: RouteQueue, class: classRead}, segment)
}

// named fills in the queue a path segment names; what is no single segment
// keeps the class and has no answer.
func named(t target, segment string) target {
	queue, err := url.PathUnescape(segment)
	if err != nil || queue == "" || strings.Contains(segment, "/") {
		return target{route: RouteOther, class: t.class}
	}
	t.queue = queue
	return t
}

// classifyUnserved knows the classes of routes this broker does not serve:
// their refusals are the proxy's all the same (cell-http §5.2).
func classifyUnserved(method, rest string) target {
	first, _, deeper := strings.Cut(rest, "/")
	get, post, del := method == http.MethodGet, method == http.MethodPost, method == http.MethodDelete
	t := target{route: RouteOther}
	switch first {
	case "pop", "ack", "lease":
		t.class = classConsume
	case "partitions":
		if post && rest == "partitions/changed" {
			t.class = classConsume
		}
	case "status":
		if deeper { // the bare path is the operator's
			t.class = classRead
		}
	case "analytics":
		t.class = classRead
	case "consumer-groups":
		switch {
		case get && !deeper:
			t.class, t.route = classRead, RouteGroups
		case get:
			t.class = classRead
		case post, del:
			t.class = classQueueAdmin
		}
	case "dlq", "messages":
		switch {
		case get, first == "messages" && method == http.MethodHead:
			t.class = classRead
		case post, del:
			t.class = classQueueAdmin
		}
	case "traces":
		switch {
		case get:
			t.class = classRead
		case post:
			t.class, t.feature = classGated, featureTraces
		}
	case "timers":
		t.class, t.feature = classGated, featureTimers
	case "streams":
		t.class, t.feature = classGated, featureStreams
	case "ephemeral":
		t.class, t.feature = classGated, featureEphemeral
	}
	if t.class == classBlocked {
		return target{}
	}
	return t
}

// under cuts "name" or "name/" off the front of a path.
func under(path, name string) (below string, ok bool) {
	if path == name {
		return "", true
	}
	return strings.CutPrefix(path, name+"/")
}

// permits reports whether a key's scopes suffice for the class. Scopes are
// independent, except that admin implies read (cell-http §5.2).
func (c class) permits(s control.Scopes) bool {
	switch c {
	case classProduce:
		return s.Produce
	case classConsume:
		return s.Consume
	case classQueueAdmin:
		return s.Admin
	case classRead:
		return s.Read || s.Admin
	case classGated:
		return s.Produce || s.Consume
	default:
		return false
	}
}
