package contract

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// pushCases are cell-http §3.4.
func pushCases() []kase {
	return []kase{
		{section: "3.4", name: "201, and one verdict for each item in order", items: is(routes, offsets), run: pushVerdicts},
		{section: "3.4", name: "offsets of a partition are contiguous from 0", items: is(offsets), run: contiguous},
		{section: "3.4", name: "no items", run: func(p *probe) {
			r := p.push(acme, "")
			p.status(r, 201)
			p.eq(r, "", "[]")
		}},
		{section: "3.4", name: "a missing partition is Default, a missing queue is made", run: func(p *probe) {
			q := p.name("fresh")
			r := p.push(acme, fmt.Sprintf(`{"queue":%q,"payload":1}`, q))
			p.status(r, 201)
			p.eq(p.fetch(acme, q, "Default", 0), "entries.0.records.0.payload", "1")
		}},
		{section: "3.4", name: "payloads come back as they were", run: payloads},
		{section: "3.4", name: "a transactionId within the window is a duplicate with the first offset", items: is(offsets), run: duplicates},
		{section: "3.4", name: "bodies that are none", run: pushBad},
		{section: "5.3", name: "a batch over the plan", items: is(caps), own: true, run: func(p *probe) {
			t := p.cluster("free", `{"max_msgs_per_sec":null,"max_req_per_sec":null}`)
			p.refused(p.push(t.key, strings.TrimSuffix(strings.Repeat(rec("q", "0", "1")+",", 1001), ",")), 413, "payload_too_large", "batch of 1001 items exceeds max_batch_items (1000)")
			p.status(p.push(t.key, strings.TrimSuffix(strings.Repeat(rec("q", "0", "1")+",", 1000), ",")), 201)
		}},
		{section: "5.3", name: "a payload over the plan", items: is(caps), own: true, run: func(p *probe) {
			t := p.cluster("free", "{}")
			big := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
			p.refused(p.push(t.key, rec("q", "0", "1")+","+rec("q", "0", big(262_145))), 413, "payload_too_large", "item 1: payload 262145 bytes exceeds max_payload_bytes (262144)")
			p.eq(p.fetch(t.key, "q", "0", 0), "entries.0.error", "UNKNOWN_TOPIC_OR_PARTITION")
			p.status(p.push(t.key, rec("q", "0", big(262_144))), 201)
		}},
		{section: "5.3", name: "a body over 16 MiB", items: is(caps), run: func(p *probe) {
			body := `{"items":[]}`
			p.refused(p.post(acme, "/api/v1/push", body+strings.Repeat(" ", 16<<20-len(body)+1)), 413, "payload_too_large", "request body exceeds cap")
			p.status(p.post(acme, "/api/v1/push", body+strings.Repeat(" ", 16<<20-len(body))), 201)
		}},
	}
}

func pushVerdicts(p *probe) {
	q := p.name("orders")
	r := p.push(acme, rec(q, "0", "1")+","+rec(q, "1", "2")+","+rec(q, "0", "3"))
	p.status(r, 201)
	p.eq(r, "0.index", "0", "0.status", "queued", "0.offset", "0", "0.queueName", q,
		"1.index", "1", "1.status", "queued", "1.offset", "0", "2.index", "2", "2.status", "queued", "2.offset", "1", "3", "absent")
	if id := r.at("0.message_id"); id == "absent" || id == r.at("1.message_id") || r.at("0.transaction_id") == "absent" {
		p.errorf("ids: %s", r.body)
	}
}

func contiguous(p *probe) {
	q := p.name("orders")
	next := 0
	for n := range 5 {
		items := strings.TrimSuffix(strings.Repeat(rec(q, "0", "1")+",", n+1), ",")
		r := p.want2xx(p.push(acme, items))
		for i := range n + 1 {
			p.eq(r, fmt.Sprintf("%d.offset", i), strconv.Itoa(next))
			next++
		}
	}
	r := p.fetch(acme, q, "0", 0)
	for i := range next {
		p.eq(r, fmt.Sprintf("entries.0.records.%d.offset", i), strconv.Itoa(i))
	}
	p.eq(r, "entries.0.highWatermark", strconv.Itoa(next), "entries.0.logStartOffset", "0")
}

func payloads(p *probe) {
	q := p.name("orders")
	all := []string{`null`, `true`, `12`, `"ö\"😀"`, `[]`, `{"k":null,"v":"aGk=","t":1}`, `9007199254740993`}
	for _, payload := range all {
		p.want2xx(p.push(acme, rec(q, "0", payload)))
	}
	r := p.fetch(acme, q, "0", 0)
	for i, payload := range all {
		if !strings.Contains(r.body, `"payload":`+payload) {
			p.errorf("payload %d: %s is not in %s", i, payload, r.at(fmt.Sprintf("entries.0.records.%d", i)))
		}
	}
}

func duplicates(p *probe) {
	q := p.name("orders")
	item := func(partition, id string) string {
		return fmt.Sprintf(`{"queue":%q,"partition":%q,"payload":1,"transactionId":%q}`, q, partition, id)
	}
	p.want2xx(p.post(acme, "/api/v1/configure", `{"queue":"`+q+`"}`))
	p.want2xx(p.push(acme, item("0", "a")+","+item("0", "b")))
	r := p.push(acme, item("0", "b")+","+item("1", "b")+","+item("0", "c"))
	p.status(r, 201)
	p.eq(r, "0.status", "duplicate", "0.offset", "1", "0.transaction_id", "b", "1.status", "queued", "1.offset", "0", "2.status", "queued", "2.offset", "2")
	p.eq(p.fetch(acme, q, "0", 0), "entries.0.highWatermark", "3")
	p.want2xx(p.post(acme, "/api/v1/configure", `{"queue":"`+q+`","dedupWindowSeconds":0}`))
	p.eq(p.push(acme, item("0", "b")), "0.status", "queued", "0.offset", "3")
}

func pushBad(p *probe) {
	q := p.name("never")
	for _, body := range []string{`{`, `[]`, `{}`, `{"items":{}}`, `{"items":[7]}`, `{"items":[{"payload":1}]}`, `{"items":[` + rec(q, "0", "1") + `,{"queue":"` + q + `"}]}`} {
		r := p.post(acme, "/api/v1/push", body)
		p.status(r, 400)
		if r.at("error") == "absent" {
			p.errorf("%s: %s", body, r.body)
		}
	}
	if n := p.listedAs(acme, q); n != "absent" {
		p.errorf("a refused push wrote something")
	}
}

// fetchCases are cell-http §3.5 and §3.6.
func fetchCases() []kase {
	return []kase{
		{section: "3.5", name: "records, bounds and names", items: is(routes, bounds), run: fetchShape},
		{section: "3.5", name: "true bounds beside every error", items: is(bounds), run: fetchErrors},
		{section: "3.5", name: "the bounds probe at 2^63−1", items: is(bounds), run: func(p *probe) {
			q := p.name("orders")
			p.want2xx(p.push(acme, rec(q, "0", "1")))
			p.eq(p.post(acme, "/api/v1/fetch", `{"entries":[{"queue":"`+q+`","partition":"0","offset":9223372036854775807,"maxBytes":1}],"maxWaitMs":0,"minBytes":0}`),
				"entries.0.error", "OFFSET_OUT_OF_RANGE", "entries.0.highWatermark", "1", "entries.0.logStartOffset", "0", "entries.0.records", "[]")
		}},
		{section: "3.5", name: "a partition may be a number; no entries", run: func(p *probe) {
			q := p.name("orders")
			p.want2xx(p.push(acme, rec(q, "2", "1")))
			p.eq(p.post(acme, "/api/v1/fetch", `{"entries":[{"queue":"`+q+`","partition":2,"offset":0,"maxBytes":0}]}`), "entries.0.partition", "2", "entries.0.records.0.offset", "0")
			p.eq(p.post(acme, "/api/v1/fetch", `{"entries":[]}`), "entries", "[]")
			p.eq(p.post(acme, "/api/v1/fetch", `{}`), "entries", "[]")
		}},
		{section: "3.5", name: "one record is given however large, and maxBytes bounds the rest", run: fetchSizes},
		{section: "3.5", name: "calls that are refused whole", run: fetchBad},
		{section: "3.5", name: "a poll ends at its deadline with what there is", items: is(longPoll), run: pollDeadline},
		{section: "3.5", name: "an append wakes a poll", items: is(longPoll), run: pollWakes},
		{section: "3.5", name: "an error, or enough, answers at once", items: is(longPoll, bounds), run: pollAtOnce},
		{section: "3.6", name: "offsets for times", items: is(routes), run: times},
		{section: "3.6", name: "calls that are refused whole", run: timesBad},
	}
}

func fetchShape(p *probe) {
	q := p.name("orders")
	p.want2xx(p.push(acme, rec(q, "2", `{"k":null,"v":"aGk="}`)+","+rec(q, "2", "2")))
	r := p.post(acme, "/api/v1/fetch", `{"entries":[{"queue":"`+q+`","partition":"2","offset":1},{"queue":"`+q+`","partition":"2","offset":2},{"queue":"`+q+`","partition":"9","offset":0}]}`)
	p.status(r, 200)
	p.eq(r, "entries.0.queue", q, "entries.0.partition", "2", "entries.0.records.0.offset", "1", "entries.0.records.0.payload", "2", "entries.0.error", "absent",
		"entries.0.highWatermark", "2", "entries.0.logStartOffset", "0",
		"entries.1.records", "[]", "entries.1.error", "absent", "entries.1.highWatermark", "2",
		"entries.2.records", "[]", "entries.2.error", "absent", "entries.2.highWatermark", "0", "entries.2.logStartOffset", "0", "entries.3", "absent")
	if ts := r.at("entries.0.records.0.ts"); !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`).MatchString(ts) {
		p.errorf("ts %q", ts)
	}
	if r.at("entries.0.records.0.transactionId") == "absent" {
		p.errorf("no transactionId")
	}
}

func fetchErrors(p *probe) {
	q := p.name("orders")
	p.want2xx(p.push(acme, rec(q, "0", "1")))
	p.eq(p.fetch(acme, p.name("none"), "0", 0), "entries.0.error", "UNKNOWN_TOPIC_OR_PARTITION", "entries.0.highWatermark", "0", "entries.0.logStartOffset", "0", "entries.0.records", "[]")
	p.eq(p.fetch(acme, q, "0", 2), "entries.0.error", "OFFSET_OUT_OF_RANGE", "entries.0.highWatermark", "1", "entries.0.logStartOffset", "0", "entries.0.records", "[]")
	p.eq(p.fetch(acme, q, "5", 5), "entries.0.error", "OFFSET_OUT_OF_RANGE", "entries.0.highWatermark", "0", "entries.0.logStartOffset", "0")
}

func fetchSizes(p *probe) {
	q := p.name("orders")
	text := `"` + strings.Repeat("x", 998) + `"`
	p.want2xx(p.push(acme, rec(q, "0", text)+","+rec(q, "0", text)+","+rec(q, "0", text)))
	ask := func(bytes int) reply {
		return p.post(acme, "/api/v1/fetch", fmt.Sprintf(`{"entries":[{"queue":%q,"partition":"0","offset":0,"maxBytes":%d}]}`, q, bytes))
	}
	p.eq(ask(1), "entries.0.records.0.offset", "0", "entries.0.records.1", "absent", "entries.0.highWatermark", "3")
	p.eq(ask(2000), "entries.0.records.1.offset", "1", "entries.0.records.2", "absent")
	p.eq(ask(1<<40), "entries.0.records.2.offset", "2")
}

func fetchBad(p *probe) {
	entry := func(more string) string { return `{"queue":"q","partition":"0"` + more + `}` }
	many := strings.TrimSuffix(strings.Repeat(entry(`,"offset":0`)+",", 1025), ",")
	for _, body := range []string{
		`{`, `{"entries":[` + entry("") + `]}`, `{"entries":[` + entry(`,"offset":-1`) + `]}`, `{"entries":[` + many + `]}`,
		`{"entries":[{"partition":"0","offset":0}]}`, `{"entries":[` + entry(`,"offset":0`) + `,` + entry(`,"offset":-1`) + `]}`,
	} {
		p.status(p.post(acme, "/api/v1/fetch", body), 400)
	}
	p.status(p.post(acme, "/api/v1/fetch", `{"entries":[`+strings.TrimSuffix(strings.Repeat(entry(`,"offset":0`)+",", 1024), ",")+`]}`), 200)
}

func (p *probe) poll(queue string, offset, wait, least int) reply {
	return p.post(acme, "/api/v1/fetch", fmt.Sprintf(`{"entries":[{"queue":%q,"partition":"0","offset":%d}],"maxWaitMs":%d,"minBytes":%d}`, queue, offset, wait, least))
}

// longWait is below the longest wait of a poll (30 s) by a distance that no busy
// machine bridges.
const longWait = 20 * time.Second

func pollDeadline(p *probe) {
	q := p.name("orders")
	p.want2xx(p.push(acme, rec(q, "0", "1")))
	for _, offset := range []int{0, 1} {
		r := p.poll(q, offset, 150, 1000)
		p.status(r, 200)
		p.eq(r, "entries.0.highWatermark", "1")
		if r.took < 150*time.Millisecond || r.took > longWait {
			p.errorf("answered after %v", r.took)
		}
	}
}

func pollWakes(p *probe) {
	q := p.name("orders")
	p.want2xx(p.post(acme, "/api/v1/configure", `{"queue":"`+q+`"}`))
	polled := make(chan reply, 1)
	body := fmt.Sprintf(`{"entries":[{"queue":%q,"partition":"0","offset":0}],"maxWaitMs":30000,"minBytes":1}`, q)
	go p.pollBeside(body, polled)
	// The poll may park before or after the append: it has to be answered
	// either way, long before its own deadline.
	p.poll(q, 0, 20, 1)
	pushed := time.Now()
	p.want2xx(p.push(acme, rec(q, "0", "1")))
	r := <-polled
	p.eq(r, "entries.0.records.0.offset", "0")
	if late := time.Since(pushed); late > longWait {
		p.errorf("the poll was answered %v after the append", late)
	}
}

func (p *probe) pollBeside(body string, polled chan<- reply) {
	r, err := p.try("POST", "/api/v1/fetch", body, map[string]string{"Authorization": "Bearer " + p.keys[acme]})
	if err != nil {
		r.body = err.Error()
	}
	polled <- r
}

func pollAtOnce(p *probe) {
	q := p.name("orders")
	p.want2xx(p.push(acme, rec(q, "0", "1")))
	for name, r := range map[string]reply{
		"enough":       p.poll(q, 0, 30_000, 1),
		"unknown":      p.poll(p.name("none"), 0, 30_000, 1),
		"out of range": p.poll(q, 7, 30_000, 1),
		"minBytes 0":   p.poll(q, 1, 30_000, 0),
		"no wait":      p.poll(q, 1, 0, 1),
	} {
		p.status(r, 200)
		if r.took > longWait {
			p.errorf("%s: parked for %v", name, r.took)
		}
	}
}

func times(p *probe) {
	q := p.name("orders")
	p.want2xx(p.push(acme, rec(q, "0", `{"k":null,"v":null,"t":1}`)+","+rec(q, "0", "2")))
	ask := func(queue, partition, when string) reply {
		return p.post(acme, "/api/v1/fetch/offsets", fmt.Sprintf(`{"entries":[{"queue":%q,"partition":%q,"timestamp":%s}]}`, queue, partition, when))
	}
	r := ask(q, "0", "0")
	p.status(r, 200)
	p.eq(r, "entries.0.queue", q, "entries.0.partition", "0", "entries.0.offset", "0", "entries.0.highWatermark", "2", "entries.0.logStartOffset", "0", "entries.0.error", "absent")
	at, err := time.Parse(time.RFC3339Nano, r.at("entries.0.ts"))
	p.must(err)
	p.eq(ask(q, "0", strconv.FormatInt(at.UnixMilli(), 10)), "entries.0.offset", "0")
	p.eq(ask(q, "0", `"2020-01-01T00:00:00Z"`), "entries.0.offset", "0")
	p.eq(ask(q, "0", strconv.FormatInt(at.UnixMilli()+1, 10)), "entries.0.offset", "null", "entries.0.ts", "null", "entries.0.highWatermark", "2")
	p.eq(ask(q, "4", "0"), "entries.0.offset", "null", "entries.0.highWatermark", "0", "entries.0.error", "absent")
	p.eq(ask(p.name("none"), "0", "0"), "entries.0.offset", "null", "entries.0.error", "UNKNOWN_TOPIC_OR_PARTITION")
	p.want2xx(p.push(acme, fmt.Sprintf(`{"queue":%q,"payload":1}`, q)))
	p.eq(p.post(acme, "/api/v1/fetch/offsets", `{"entries":[{"queue":"`+q+`","timestamp":0}]}`), "entries.0.partition", "Default", "entries.0.offset", "0")
}

func timesBad(p *probe) {
	for _, when := range []string{"-1", `"yesterday"`, "null", "1.5", "{}"} {
		p.status(p.post(acme, "/api/v1/fetch/offsets", `{"entries":[{"queue":"q","partition":"0","timestamp":`+when+`}]}`), 400)
	}
	one := `{"queue":"q","partition":"0","timestamp":0}`
	p.status(p.post(acme, "/api/v1/fetch/offsets", `{"entries":[`+strings.TrimSuffix(strings.Repeat(one+",", 1025), ",")+`]}`), 400)
}
