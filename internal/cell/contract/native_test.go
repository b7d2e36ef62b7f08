package contract

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// nativeCases are the routes of native clients: cell-http §5.2 has their
// classes, §5.6 how they are metered. Their bodies were read off the official
// client, so they are inferred.
func nativeCases() []kase {
	native := func(name string, items []item, run func(*probe)) kase {
		return kase{section: "5.2", name: "native: " + name, items: items, sure: inferred, run: run}
	}
	own := func(name string, items []item, run func(*probe)) kase {
		k := native(name, items, run)
		k.own = true
		return k
	}
	return []kase{
		native("a pop by queue shows what its acknowledgment needs", nil, popShape),
		native("a pop by partition, and one with nothing to give", nil, popPartition),
		native("one acknowledgment is answered by an array", nil, ackOne),
		native("a batch of acknowledgments, each with a verdict of its own", nil, ackBatch),
		native("a failed message comes again, and then is a dead letter", nil, failedAgain),
		native("a lease is extended while it lasts", nil, extended),
		native("autoAck settles at delivery", nil, autoAck),
		native("a group begins where its first pop says", nil, subscribed),
		native("conflation delivers the newest, and is the group's for good", nil, conflated),
		native("autopilot says what it took", nil, func(p *probe) {
			q := p.name("native")
			p.want2xx(p.push(acme, rec(q, "0", "1")+","+rec(q, "1", "2")))
			r := p.pop(acme, q, "autopilot=true&wait=false")
			p.eq(r, "messages.1.queue", q)
			if r.at("autopilot.batch") == "absent" || r.at("autopilot.partitions") == "absent" {
				p.errorf("%s", r.body)
			}
		}),
		native("a transaction takes acknowledgments, or nothing of it happens", is(transactions), txnAcks),
		native("equal names in two clusters are two groups", is(isolation), twoGroups),
		native("groups are listed, sought and deleted", nil, groupsManaged),
		native("parameters and bodies that are none", nil, nativeBad),
		own("what scopes may do", is(scopes), nativeScopes),
		own("waiting pops are bounded, others are not", is(buckets), func(p *probe) {
			t := p.cluster("local", `{"max_parked_pops":0}`)
			p.want2xx(p.push(t.key, rec("q", "0", "1")))
			r := p.pop(t.key, "q", "wait=true&timeout=1")
			p.refused(r, 429, "rate_limited", "too many parked consumers")
			if after := r.header.Get("Retry-After"); after != "5" {
				p.errorf("Retry-After %q", after)
			}
			p.status(p.pop(t.key, "q", "wait=false"), 200)
		}),
		own("no block stops consumption", is(blocks), func(p *probe) {
			t := p.cluster("local", "{}")
			p.want2xx(p.push(t.key, rec("q", "0", "1")))
			t.status(control.PushBlocked)
			r := p.pop(t.key, "q", "wait=false")
			p.eq(p.post(t.key, "/api/v1/ack", ack(r, 0, "", "")), "0.success", "true")
			t.status(control.Suspended)
			p.refused(p.pop(t.key, "q", "wait=false"), 403, "cluster_suspended", "")
		}),
		own("a pop is metered as delivery, the rest as read", is(metering), func(p *probe) {
			t := p.cluster("local", "{}")
			p.want2xx(p.push(t.key, rec("q", "0", "1")+","+rec("q", "0", "2")))
			pop := p.pop(t.key, "q", "wait=false&batch=5")
			acked := p.post(t.key, "/api/v1/ack", ack(pop, 0, "", ""))
			by := t.usage()
			if row := by["delivery"]; row.Reqs != 1 || row.Msgs != 2 || row.BytesIn != 0 || row.BytesOut != int64(len(pop.body)) {
				p.errorf("delivery %+v", row)
			}
			if row := by["read"]; row.Reqs != 1 || row.Msgs != 0 || row.BytesIn != 0 || row.BytesOut != int64(len(acked.body)) {
				p.errorf("read %+v", row)
			}
		}),
		own("a lease ends with its time", nil, func(p *probe) {
			t := p.cluster("local", "{}")
			p.want2xx(p.post(t.key, "/api/v1/configure", `{"queue":"q","leaseTime":60}`))
			p.want2xx(p.push(t.key, rec("q", "0", "1")))
			r := p.pop(t.key, "q", "wait=false")
			p.status(p.pop(t.key, "q", "wait=false"), 204)
			p.pass(61 * time.Second)
			p.eq(p.post(t.key, "/api/v1/ack", ack(r, 0, "", "")), "0.success", "false", "0.error", "invalid or expired lease")
			p.eq(p.pop(t.key, "q", "wait=false"), "messages.0.data", "1", "messages.0.retryCount", "0")
		}),
	}
}

func (p *probe) pop(key, queue, query string) reply {
	return p.get(key, "/api/v1/pop/queue/"+url.PathEscape(queue)+"?"+query)
}

// ack is a body for the message at an index of a pop.
func ack(r reply, i int, status, group string) string {
	at := fmt.Sprintf("messages.%d.", i)
	if status == "" {
		status = "completed"
	}
	return fmt.Sprintf(`{"transactionId":%q,"partitionId":%q,"leaseId":%q,"status":%q,"error":"why","consumerGroup":%q}`,
		r.at(at+"transactionId"), r.at(at+"partitionId"), r.at(at+"leaseId"), status, group)
}

func popShape(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, fmt.Sprintf(`{"queue":%q,"partition":"7","payload":{"a":[1]},"transactionId":"mine"}`, q)+","+rec(q, "7", "null")))
	r := p.want2xx(p.pop(acme, q, "wait=false&batch=5&consumerGroup=g"))
	p.status(r, 200)
	p.eq(r, "messages.0.transactionId", "mine", "messages.0.data", `{"a":[1]}`, "messages.0.queue", q, "messages.0.partition", "7",
		"messages.0.retryCount", "0", "messages.0.consumerGroup", "g", "messages.1.data", "null", "messages.2", "absent")
	for _, member := range []string{"id", "partitionId", "leaseId", "createdAt"} {
		if r.at("messages.0."+member) == "absent" {
			p.errorf("%s is absent in %s", member, r.body)
		}
	}
	if r.at("messages.0.leaseId") != r.at("messages.1.leaseId") {
		p.errorf("one pop, two leases: %s", r.body)
	}
	p.status(p.pop(acme, q, "wait=false&consumerGroup=g"), 204)
	p.eq(p.pop(acme, q, "wait=false&consumerGroup=h"), "messages.0.transactionId", "mine")
}

func popPartition(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, rec(q, "a", "1")+","+rec(q, "b/c", "2")))
	at := "/api/v1/pop/queue/" + q + "/partition/"
	p.eq(p.get(acme, at+url.PathEscape("b/c")+"?wait=false&batch=9"), "messages.0.data", "2", "messages.1", "absent")
	for _, path := range []string{at + "none?wait=false", "/api/v1/pop/queue/none-" + q + "?wait=true&timeout=1", at + "b%2Fc?wait=false"} {
		r := p.get(acme, path)
		p.status(r, 204)
		if r.body != "" {
			p.errorf("%s: %q", path, r.body)
		}
	}
}

func ackOne(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, rec(q, "0", "1")+","+rec(q, "0", "2")))
	r := p.pop(acme, q, "wait=false&batch=2")
	p.eq(p.post(acme, "/api/v1/ack", ack(r, 1, "", "")), "0.success", "true", "0.error", "null", "0.transactionId", r.at("messages.1.transactionId"),
		"0.queueName", q, "0.partitionName", "0", "0.leaseReleased", "false", "1", "absent")
	p.eq(p.post(acme, "/api/v1/ack", ack(r, 0, "", "")), "0.success", "true", "0.leaseReleased", "true")
	p.status(p.pop(acme, q, "wait=false"), 204)
}

func ackBatch(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, rec(q, "0", "1")+","+rec(q, "0", "2")+","+rec(q, "0", "3")))
	r := p.pop(acme, q, "wait=false&batch=3&consumerGroup=g")
	strange := strings.Replace(ack(r, 0, "", ""), r.at("messages.0.transactionId"), "strange", 1)
	p.eq(p.post(acme, "/api/v1/ack/batch", `{"acknowledgments":[`+ack(r, 0, "completed", "")+","+ack(r, 1, "failed", "")+","+ack(r, 2, "", "")+","+strange+`],"consumerGroup":"g"}`),
		"0.success", "true", "1.success", "true", "2.success", "true", "3.success", "false", "2.leaseReleased", "true", "4", "absent")
	p.eq(p.pop(acme, q, "wait=false&batch=3&consumerGroup=g"), "messages.0.data", "2", "messages.0.retryCount", "1", "messages.1", "absent")
	p.eq(p.post(acme, "/api/v1/ack/batch", `{"acknowledgments":[]}`), "", "[]")
}

func failedAgain(p *probe) {
	q := p.name("native")
	p.want2xx(p.post(acme, "/api/v1/configure", `{"queue":"`+q+`","retryLimit":1}`))
	p.want2xx(p.push(acme, rec(q, "0", `"poison"`)))
	for try, dead := range []string{"false", "true"} {
		r := p.pop(acme, q, "wait=false")
		p.eq(r, "messages.0.retryCount", fmt.Sprint(try))
		p.eq(p.post(acme, "/api/v1/ack", ack(r, 0, "failed", "")), "0.success", "true", "0.dlq", dead)
	}
	p.status(p.pop(acme, q, "wait=false"), 204)
	p.eq(p.get(acme, "/api/v1/dlq?queue="+q+"&limit=5&partition=0"), "total", "1", "messages.0.data", "poison", "messages.0.errorMessage", "why",
		"messages.0.retryCount", "2")
	p.eq(p.get(acme, "/api/v1/dlq?queue="+q+"&partition=1"), "total", "0", "messages", "[]")
}

func extended(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, rec(q, "0", "1")))
	r := p.pop(acme, q, "wait=false")
	at := "/api/v1/lease/" + r.at("messages.0.leaseId") + "/extend"
	p.eq(p.post(acme, at, "{}"), "success", "true", "renewed", "1", "leaseId", r.at("messages.0.leaseId"))
	if p.post(acme, at, "{}").at("newExpiresAt") == "null" {
		p.errorf("no newExpiresAt")
	}
	p.want2xx(p.post(acme, "/api/v1/ack", ack(r, 0, "", "")))
	r = p.post(acme, at, "{}")
	p.status(r, 200)
	p.eq(r, "success", "false", "renewed", "0", "newExpiresAt", "null")
}

func autoAck(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, rec(q, "0", "1")))
	p.eq(p.pop(acme, q, "wait=false&autoAck=true"), "messages.0.data", "1", "messages.0.leaseId", "absent")
	p.status(p.pop(acme, q, "wait=false"), 204)
}

func subscribed(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, rec(q, "0", `"old"`)))
	for _, query := range []string{"a&subscriptionMode=new", "b&subscriptionFrom=now", "c&subscriptionFrom=2099-01-01T00:00:00Z"} {
		p.status(p.pop(acme, q, "wait=false&consumerGroup="+query), 204)
	}
	p.want2xx(p.push(acme, rec(q, "0", `"new"`)))
	for group, want := range map[string]string{"a": "new", "b": "new", "c": "absent", "d": "old"} {
		p.eq(p.pop(acme, q, "wait=false&consumerGroup="+group), "messages.0.data", want)
	}
}

func conflated(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, rec(q, "0", "1")+","+rec(q, "0", "2")))
	r := p.pop(acme, q, "wait=false&consumerGroup=g&conflation=true&batch=9")
	p.eq(r, "conflation", "true", "messages.0.data", "2", "messages.1", "absent", "conflationConflict", "absent")
	p.eq(p.post(acme, "/api/v1/ack", ack(r, 0, "", "g")), "0.success", "true")
	r = p.pop(acme, q, "wait=false&consumerGroup=g")
	p.eq(r, "conflation", "true", "conflationConflict", "true", "messages", "[]")
	p.pop(acme, q, "wait=false&consumerGroup=h")
	p.eq(p.pop(acme, q, "wait=false&consumerGroup=h&conflation=true"), "conflation", "absent", "conflationConflict", "true")
	p.refused(p.pop(acme, q, "wait=false&conflation=true"), 400, "bad_request", "")
	p.refused(p.pop(acme, q, "wait=false&conflation=true&consumerGroup=g&autoAck=true"), 400, "bad_request", "")
}

// op makes an acknowledgment an operation of a transaction.
func op(body string) string { return strings.Replace(body, "{", `{"type":"ack",`, 1) }

func txnAcks(p *probe) {
	q, out := p.name("native"), p.name("out")
	p.want2xx(p.push(acme, rec(q, "0", "1")+","+rec(q, "0", "2")))
	r := p.pop(acme, q, "wait=false&batch=2")
	push := `{"type":"push","items":[` + rec(out, "0", "1") + `]}`
	key := p.put(p.name("qk:t"), "1", "")
	txn := p.post(acme, "/api/v1/transaction", `{"operations":[`+op(ack(r, 0, "", ""))+","+push+`],"kv":[`+key+`]}`)
	p.eq(txn, "success", "true", "results.0.type", "push", "results.1.type", "ack", "results.1.success", "true", "results.2.type", "kv", "results.2.opIndex", "0")
	again := op(strings.Replace(ack(r, 1, "", ""), r.at("messages.1.transactionId"), "strange", 1))
	txn = p.post(acme, "/api/v1/transaction", `{"operations":[`+push+","+op(ack(r, 1, "", ""))+","+again+`],"kv":[]}`)
	p.status(txn, 200)
	p.eq(txn, "success", "false", "reason", "ack_rejected", "failedIndex", "2", "results", "[]")
	p.eq(p.fetch(acme, out, "0", 0), "entries.0.highWatermark", "1")
	lost := p.post(acme, "/api/v1/transaction", `{"operations":[`+op(ack(r, 1, "", ""))+`],"kv":[`+p.put(p.name("qk:t"), "1", `,"expect":9,"required":true`)+`]}`)
	p.eq(lost, "success", "false", "reason", "kv_precondition", "failedIndex", "1")
	unleased := strings.Replace(op(ack(r, 1, "", "")), `"leaseId"`, `"none"`, 1)
	p.eq(p.post(acme, "/api/v1/transaction", `{"operations":[`+unleased+`],"requiredLeases":["00000000-0000-4000-8000-000000000000"],"kv":[]}`), "reason", "ack_rejected")
	p.eq(p.post(acme, "/api/v1/transaction", `{"operations":[`+unleased+`],"requiredLeases":["`+r.at("messages.1.leaseId")+`"],"kv":[]}`), "success", "true")
}

func twoGroups(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, rec(q, "0", `"acme"`)))
	p.want2xx(p.push(globex, rec(q, "0", `"globex"`)))
	r := p.pop(acme, q, "wait=false&batch=9")
	p.eq(r, "messages.0.data", "acme", "messages.1", "absent")
	p.eq(p.post(globex, "/api/v1/ack", ack(r, 0, "", "")), "0.success", "false", "0.queueName", "")
	p.eq(p.post(globex, "/api/v1/lease/"+r.at("messages.0.leaseId")+"/extend", "{}"), "success", "false")
	p.eq(p.pop(globex, q, "wait=false&batch=9"), "messages.0.data", "globex", "messages.1", "absent")
	p.eq(p.post(acme2, "/api/v1/ack", ack(r, 0, "", "")), "0.success", "true")
}

func groupsManaged(p *probe) {
	q, g := p.name("native"), p.name("group")
	p.want2xx(p.push(acme, rec(q, "0", "1")+","+rec(q, "0", "2")))
	r := p.pop(acme, q, "wait=false&consumerGroup="+g)
	p.want2xx(p.post(acme, "/api/v1/ack", ack(r, 0, "", g)))
	at := "/api/v1/consumer-groups/" + g
	p.eq(p.get(acme, at), "0.name", g, "0.queueName", q, "0.kind", "queen", "0.totalLag", "1", "0.partitionCursors", "1", "1", "absent")
	for _, path := range []string{"/api/v1/consumer-groups", "/api/v1/consumer-groups/lagging"} {
		if !strings.Contains(p.get(acme, path).body, g) {
			p.errorf("%s is not in %s", g, path)
		}
	}
	p.eq(p.get(acme, "/api/v1/resources/queues/"+q+"/depth?group="+g), "pending", "1", "partitionsPending", "1", "partitions.0.partition", "0")
	seek := at + "/queues/" + q + "/seek"
	p.want2xx(p.post(acme, seek, `{"toEnd":true}`))
	p.status(p.pop(acme, q, "wait=false&consumerGroup="+g), 204)
	p.want2xx(p.post(acme, seek, `{"timestamp":"2020-01-01T00:00:00Z"}`))
	p.eq(p.pop(acme, q, "wait=false&consumerGroup="+g), "messages.0.data", "1")
	p.refused(p.post(acme, seek, `{}`), 400, "bad_request", "")
	p.eq(p.call("DELETE", at+"/queues/"+q+"?deleteMetadata=false", acme, ""), "deletedPartitions", "1")
	p.eq(p.pop(acme, q, "wait=false&consumerGroup="+g), "messages.0.data", "1")
	p.eq(p.call("DELETE", at, acme, ""), "deletedPartitions", "1")
	p.eq(p.get(acme, at), "", "[]")
}

func nativeBad(p *probe) {
	q := p.name("native")
	p.want2xx(p.push(acme, rec(q, "0", "1")))
	for _, query := range []string{"batch=x", "batch=-1", "wait=perhaps", "timeout=1e3", "subscriptionMode=odd", "subscriptionFrom=odd", "autoAck=2"} {
		p.refused(p.pop(acme, q, query+"&wait=false"), 400, "bad_request", "")
	}
	p.refused(p.pop(acme, q, "wait=false&consumerGroup="+strings.Repeat("g", 256)), 413, "name_too_long", "")
	p.refused(p.get(acme, "/api/v1/pop?wait=false"), 400, "bad_request", "")
	r := p.pop(acme, q, "wait=false")
	good := ack(r, 0, "", "")
	for body, code := range map[string]string{
		`{`: "bad_body", "\xff": "bad_body", `[]`: "bad_request", `{}`: "bad_request", `{"acknowledgments":{}}`: "bad_request", `{"acknowledgments":[1]}`: "bad_request",
		`{"transactionId":1,"partitionId":"a"}`: "bad_request", `{"transactionId":"a"}`: "bad_request",
		strings.Replace(good, "completed", "odd", 1):   "bad_request",
		`{"acknowledgments":[` + good + `,{}]}`:        "bad_request",
		`{"acknowledgments":[` + good + `]} x`:         "bad_body",
		strings.Replace(good, `"error":`, `"error`, 1): "bad_body",
	} {
		p.refused(p.post(acme, "/api/v1/ack/batch", body), 400, code, "")
	}
	wrong := strings.NewReplacer(r.at("messages.0.partitionId"), "odd").Replace(good)
	p.eq(p.post(acme, "/api/v1/ack", wrong), "0.success", "false")
	wrong = strings.NewReplacer(r.at("messages.0.leaseId"), "odd").Replace(good)
	p.eq(p.post(acme, "/api/v1/ack", wrong), "0.success", "false")
	p.eq(p.post(acme, "/api/v1/lease/odd/extend", "{}"), "success", "false")
	p.eq(p.post(acme, "/api/v1/ack", good), "0.success", "true")
}

func nativeScopes(p *probe) {
	t := p.cluster("local", "{}")
	p.want2xx(p.push(t.key, rec("q", "0", "1")))
	r := p.pop(t.key, "q", "wait=false")
	const text = "operation not permitted for this credential"
	for _, call := range []struct{ method, path, body, needs string }{
		{"GET", "/api/v1/pop/queue/q?wait=false", "", "consume"},
		{"GET", "/api/v1/pop?wait=false&task=t", "", "consume"},
		{"POST", "/api/v1/ack", ack(r, 0, "", ""), "consume"},
		{"POST", "/api/v1/ack/batch", `{"acknowledgments":[]}`, "consume"},
		{"POST", "/api/v1/lease/x/extend", "{}", "consume"},
		{"GET", "/api/v1/dlq?queue=q", "", "read admin"},
		{"GET", "/api/v1/resources/queues/q/depth", "", "read admin"},
		{"GET", "/api/v1/consumer-groups/lagging", "", "read admin"},
		{"POST", "/api/v1/consumer-groups/g/queues/q/seek", `{"toEnd":true}`, "admin"},
		{"POST", "/api/v1/consumer-groups/g/subscription", `{"subscriptionTimestamp":"2026-01-01T00:00:00Z"}`, "admin"},
		{"DELETE", "/api/v1/consumer-groups/g", "", "admin"},
		{"DELETE", "/api/v1/consumer-groups/g/queues/q", "", "admin"},
	} {
		for _, scope := range []string{"produce", "consume", "admin", "read"} {
			got := p.call(call.method, call.path, t.scoped(scope), call.body)
			if strings.Contains(call.needs, scope) {
				p.want2xx(got)
			} else {
				p.refused(got, 403, "forbidden", text)
			}
		}
	}
	p.refused(p.post(t.scoped("produce"), "/api/v1/transaction", `{"operations":[`+op(ack(r, 0, "", ""))+`],"kv":[]}`), 403, "forbidden", text)
	p.status(p.post(t.scoped("produce", "consume"), "/api/v1/transaction", `{"operations":[`+op(ack(r, 0, "", ""))+`],"kv":[]}`), 200)
}
