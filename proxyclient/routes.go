package proxyclient

import "net/http"

// The routes, as Error.Route and Observe name them.
const (
	RouteList      = "list_queues"
	RouteConfigure = "configure"
	RouteDelete    = "delete_queue"
	RoutePush      = "push"
	RouteFetch     = "fetch"
	RouteTimes     = "offsets_for_times"
	RouteKV        = "kv"
	RouteIdentify  = "identify"
	RouteTxn       = "transaction"
	RouteSizes     = "sizes"
)

// Routes is the whole set, for labels that are made beforehand.
func Routes() []string {
	return []string{
		RouteList, RouteConfigure, RouteDelete, RoutePush,
		RouteFetch, RouteTimes, RouteKV, RouteIdentify, RouteTxn, RouteSizes,
	}
}

// target is the request line of a route.
type target struct {
	name   string // of the fixed set above
	method string
	path   string
	query  string
	tail   string // a last path segment, not yet escaped
	after  string // what follows the tail

	head func(http.Header) // is shown the head of a 2xx
}

func listTarget() target {
	return target{name: RouteList, method: http.MethodGet, path: "/api/v1/resources/queues", query: "stats=lanes"}
}

func identifyTarget() target {
	return target{name: RouteIdentify, method: http.MethodGet, path: "/auth/me"}
}

func deleteTarget(queue string) target {
	return target{name: RouteDelete, method: http.MethodDelete, path: "/api/v1/resources/queues/", tail: queue}
}

func sizesTarget(queue string) target {
	return target{name: RouteSizes, method: http.MethodGet, path: "/api/v1/resources/queues/", tail: queue, after: "/sizes"}
}

// queueTarget is the long form of one queue, which has its sizes too.
func queueTarget(queue string) target {
	return target{name: RouteSizes, method: http.MethodGet, path: "/api/v1/resources/queues/", tail: queue}
}

func postTarget(name, path string) target {
	return target{name: name, method: http.MethodPost, path: path}
}
