package contract

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// queueCases are cell-http §3.1–§3.3 and §3.9–§3.11.
func queueCases() []kase {
	return []kase{
		{section: "3.1", name: "an empty cluster lists nothing", items: is(routes), own: true, run: func(p *probe) {
			p.eq(p.get(p.cluster("local", "{}").key, lanes), "queues", "[]", "stats", "lanes")
		}},
		{section: "3.1", name: "a queue is listed at once, its partitions as they are pushed to", items: is(routes), run: listed},
		{section: "3.1", name: "the full list", items: is(routes), run: fullList},
		{section: "3.1", name: "equal names in two clusters are two queues", items: is(isolation), run: twoClusters},
		{section: "3.2", name: "a queue is made with the defaults", items: is(routes), run: configureDefaults},
		{section: "3.2", name: "what is not named stays, null is the default, replace is all anew", run: configureMerge},
		{section: "3.2", name: "an id outlives settings, and not its queue", items: is(queueIDs), run: ids},
		{section: "3.2", name: "bodies that are none", run: configureBad},
		{section: "3.2", name: "records older than the retention are gone, offsets are not", items: is(offsets), own: true, run: retention},
		{section: "3.3", name: "delete is complete, and says what was there", items: is(routes), run: deleted},
		{section: "3.3", name: "a name is percent-encoded in the path", run: func(p *probe) {
			q := p.name("a b/ö%")
			p.want2xx(p.push(acme, rec(q, "0", "1")))
			p.eq(p.get(acme, "/api/v1/resources/queues/"+url.PathEscape(q)+"/sizes"), "queue", q)
			p.eq(p.call("DELETE", "/api/v1/resources/queues/"+url.PathEscape(q), acme, ""), "deleted", "true", "queue", q)
		}},
		{section: "3.9", name: "sizes", items: is(routes), run: sizes},
		{section: "3.10", name: "a Kafka group is listed with its kind", items: is(routes), run: groupListed},
		{section: "3.10", name: "the listing is a bare array", sure: unknown, run: func(p *probe) {
			if r := p.get(acme, "/api/v1/consumer-groups"); !strings.HasPrefix(r.body, "[") {
				p.errorf("%.100s", r.body)
			}
		}},
		{section: "3.11", name: "raft liveness is not for tenants", items: is(blockedRoutes), run: func(p *probe) {
			p.refused(p.get(acme, "/api/v1/raft/liveness"), 404, "route_blocked", "not available")
		}},
	}
}

// row finds a queue in a listing.
func (p *probe) row(key, queue string) (reply, string) {
	r := p.want2xx(p.get(key, lanes))
	for i := 0; ; i++ {
		at := fmt.Sprintf("queues.%d", i)
		switch r.at(at + ".name") {
		case queue:
			return r, at
		case "absent":
			return r, ""
		}
	}
}

func (p *probe) listedAs(key, queue string) string {
	r, at := p.row(key, queue)
	if at == "" {
		return "absent"
	}
	return r.at(at + ".partitions")
}

func listed(p *probe) {
	q := p.name("orders")
	p.want2xx(p.post(acme, "/api/v1/configure", `{"queue":"`+q+`"}`))
	if n := p.listedAs(acme, q); n != "0" {
		p.errorf("a new queue has %s partitions", n)
	}
	p.want2xx(p.push(acme, rec(q, "0", "1")+","+rec(q, "7", "2")))
	if n := p.listedAs(acme, q); n != "2" {
		p.errorf("pushed on 0 and 7: %s partitions", n)
	}
	r, at := p.row(acme, q)
	p.eq(r, at+".queue", q)
	if r.at(at+".id") == "absent" || r.at(at+".createdAt") == "absent" {
		p.errorf("no id, or no createdAt: %s", r.at(at))
	}
}

func fullList(p *probe) {
	q := p.name("orders")
	p.want2xx(p.push(acme, rec(q, "0", `"four"`)))
	for _, path := range []string{"/api/v1/resources/queues", "/api/v1/resources/queues?stats=cached"} {
		r := p.want2xx(p.get(acme, path))
		for _, member := range []string{
			"kvRows", "kvBytes", "timerRows", "timerBytes", "queues.0.namespace", "queues.0.task", "queues.0.segments",
			"queues.0.messages.total", "queues.0.messages.pending", "queues.0.retainedBytes", "queues.0.options.leaseTime", "queues.0.partitions",
		} {
			if r.at(member) == "absent" {
				p.errorf("%s: %s is absent", path, member)
			}
		}
		p.eq(r, "queues.0.storage", "segments")
	}
}

func twoClusters(p *probe) {
	q := p.name("orders")
	p.want2xx(p.push(acme, rec(q, "0", `"acme"`)))
	if n := p.listedAs(globex, q); n != "absent" {
		p.errorf("another cluster lists it with %s", n)
	}
	p.eq(p.fetch(globex, q, "0", 0), "entries.0.error", "UNKNOWN_TOPIC_OR_PARTITION")
	p.want2xx(p.push(globex, rec(q, "0", `"globex"`)))
	p.eq(p.fetch(acme, q, "0", 0), "entries.0.highWatermark", "1", "entries.0.records.0.payload", "acme")
	p.eq(p.fetch(globex, q, "0", 0), "entries.0.highWatermark", "1", "entries.0.records.0.payload", "globex")
	p.eq(p.fetch(acme2, q, "0", 0), "entries.0.records.0.payload", "acme")
	p.eq(p.call("DELETE", "/api/v1/resources/queues/"+q, globex, ""), "deleted", "true")
	p.eq(p.fetch(acme, q, "0", 0), "entries.0.highWatermark", "1")
}

func configureDefaults(p *probe) {
	q := p.name("orders")
	r := p.post(acme, "/api/v1/configure", `{"queue":"`+q+`","surplus":{"a":1}}`)
	p.status(r, 200)
	p.eq(r, "configured", "true", "partitionId", "null", "queue", q, "namespace", "", "task", "", "storage", "segments", "error", "absent",
		"options.leaseTime", "300", "options.retryLimit", "3", "options.retryDelay", "1000", "options.ttl", "3600", "options.priority", "0",
		"options.deadLetterQueue", "true", "options.dlqAfterMaxRetries", "true", "options.delayedProcessing", "0", "options.windowBuffer", "0",
		"options.retentionSeconds", "0", "options.completedRetentionSeconds", "0", "options.retentionEnabled", "false",
		"options.encryptionEnabled", "false", "options.maxWaitTimeSeconds", "0", "options.minPopWaitTime", "0",
		"options.dedupWindowSeconds", "3600", "options.retentionSinkHold", "", "options.retentionSinkHoldMaxSeconds", "604800",
		"options.maxSize", "0", "options.maxQueueSize", "0")
	_, at := p.row(acme, q)
	if list := p.get(acme, lanes); list.at(at+".id") != r.at("queueId") {
		p.errorf("queueId %s is listed as %s", r.at("queueId"), list.at(at+".id"))
	}
}

func configureMerge(p *probe) {
	q := p.name("orders")
	set := func(members string) reply {
		return p.want2xx(p.post(acme, "/api/v1/configure", `{"queue":"`+q+`",`+members+`}`))
	}
	p.eq(set(`"leaseTime":7,"options":{"retryLimit":9}`), "options.leaseTime", "7", "options.retryLimit", "9")
	p.eq(set(`"ttl":60`), "options.leaseTime", "7", "options.retryLimit", "9", "options.ttl", "60")
	p.eq(set(`"mode":"merge","leaseTime":null`), "options.leaseTime", "300", "options.retryLimit", "9")
	p.eq(set(`"mode":"replace","ttl":61`), "options.retryLimit", "3", "options.ttl", "61")
}

func ids(p *probe) {
	q := p.name("orders")
	id := func() string { r, at := p.row(acme, q); return r.at(at + ".id") }
	p.want2xx(p.post(acme, "/api/v1/configure", `{"queue":"`+q+`"}`))
	first := id()
	p.want2xx(p.post(acme, "/api/v1/configure", `{"queue":"`+q+`","leaseTime":9}`))
	p.want2xx(p.push(acme, rec(q, "0", "1")))
	if second := id(); second != first {
		p.errorf("settings changed the id")
	}
	p.want2xx(p.call("DELETE", "/api/v1/resources/queues/"+q, acme, ""))
	p.want2xx(p.post(acme, "/api/v1/configure", `{"queue":"`+q+`"}`))
	if again := id(); again == first {
		p.errorf("a recreated queue has the old id")
	}
}

func configureBad(p *probe) {
	q := p.name("never")
	for body, code := range map[string]string{
		`{`:                                     "bad_body",
		`{}`:                                    "bad_request",
		`{"queue":7}`:                           "bad_request",
		`{"queue":"` + q + `","leaseTime":"x"}`: "bad_request",
		`{"queue":"` + q + `","retentionEnabled":1}`:   "bad_request",
		`{"queue":"` + q + `","minPopWaitTime":60001}`: "bad_request",
	} {
		r := p.post(acme, "/api/v1/configure", body)
		p.status(r, 400)
		p.eq(r, "code", code)
	}
	r := p.post(acme, "/api/v1/configure", `{"queue":"`+q+`","mode":"other"}`)
	p.status(r, 400)
	if !strings.HasPrefix(r.at("error"), `mode must be "merge" or "replace", got `) {
		p.errorf("%s", r.body)
	}
	if n := p.listedAs(acme, q); n != "absent" {
		p.errorf("a refused configure made a queue")
	}
}

func retention(p *probe) {
	t := p.cluster("local", "{}")
	p.want2xx(p.post(t.key, "/api/v1/configure", `{"queue":"q","retentionEnabled":true,"retentionSeconds":60}`))
	p.want2xx(p.post(t.key, "/api/v1/configure", `{"queue":"kept"}`))
	p.want2xx(p.push(t.key, rec("q", "0", "1")+","+rec("q", "0", "2")+","+rec("kept", "0", "1")))
	p.pass(time.Hour)
	p.eventually("logStartOffset rises", func() bool { return p.fetch(t.key, "q", "0", 2).at("entries.0.logStartOffset") == "2" })
	p.eq(p.fetch(t.key, "q", "0", 0), "entries.0.error", "OFFSET_OUT_OF_RANGE", "entries.0.highWatermark", "2", "entries.0.records", "[]")
	p.eq(p.want2xx(p.push(t.key, rec("q", "0", "3"))), "0.offset", "2")
	p.eq(p.fetch(t.key, "kept", "0", 0), "entries.0.records.0.offset", "0")
}

func deleted(p *probe) {
	q := p.name("orders")
	p.want2xx(p.push(acme, rec(q, "0", "1")+","+rec(q, "0", "2")))
	r := p.call("DELETE", "/api/v1/resources/queues/"+q, acme, "")
	p.status(r, 200)
	p.eq(r, "deleted", "true", "existed", "true", "queue", q, "error", "absent")
	if n := p.listedAs(acme, q); n != "absent" {
		p.errorf("still listed")
	}
	p.eq(p.fetch(acme, q, "0", 0), "entries.0.error", "UNKNOWN_TOPIC_OR_PARTITION")
	r = p.call("DELETE", "/api/v1/resources/queues/"+q, acme, "")
	p.status(r, 200)
	p.eq(r, "deleted", "false", "existed", "false", "message", "Queue not found, nothing was deleted")
	p.eq(p.want2xx(p.push(acme, rec(q, "0", "3"))), "0.offset", "0")
}

func sizes(p *probe) {
	q := p.name("orders")
	p.want2xx(p.push(acme, rec(q, "0", `"`+strings.Repeat("x", 100)+`"`)+","+rec(q, "1", "1")))
	r := p.want2xx(p.get(acme, "/api/v1/resources/queues/"+q+"/sizes"))
	p.eq(r, "queue", q)
	if p.int(r, "partitions.0") <= p.int(r, "partitions.1") {
		p.errorf("%s", r.body)
	}
	r = p.want2xx(p.get(acme, "/api/v1/resources/queues/"+q))
	p.eq(r, "partitions.0.name", "0", "partitions.1.name", "1")
	p.int(r, "partitions.0.retainedBytes")
	p.status(p.get(acme, "/api/v1/resources/queues/"+p.name("none")+"/sizes"), 404)
	p.status(p.get(acme, "/api/v1/resources/queues/"+p.name("none")), 404)
}

func groupListed(p *probe) {
	q, g := p.name("orders"), p.name("group")
	p.want2xx(p.push(acme, rec(q, "0", "1")+","+rec(q, "0", "2")+","+rec(q, "1", "3")))
	put := func(key, value string) string {
		return `{"op":"put","ns":"queen-kafka","key":"` + key + `","value":` + value + `,"forever":true}`
	}
	p.want2xx(p.kv(acme, put("qk:group:"+g+":"+q+":0", `{"offset":1,"metadata":"","ts":1}`)+","+
		put("qk:group:"+g+":"+q+":1", `{"offset":"1"}`)+","+put("qk:group:"+g+":"+p.name("gone")+":0", `{"offset":1}`)))
	r := p.want2xx(p.get(acme, "/api/v1/consumer-groups"))
	if !strings.Contains(r.body, g) || !strings.Contains(r.body, `"kind":"kafka"`) || strings.Count(r.body, `"`+g+`"`) != 1 {
		p.errorf("%.300s", r.body)
	}
	if other := p.get(globex, "/api/v1/consumer-groups"); strings.Contains(other.body, g) {
		p.errorf("another cluster lists it")
	}
}
