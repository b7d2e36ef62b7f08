package contract

import (
	"fmt"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell"
)

// planCases are cell-http §5.4–§5.6: rates, quotas and metering.
func planCases() []kase {
	return []kase{
		{section: "5.4", name: "the plan table", items: is(buckets, caps), own: true, run: planTable},
		{section: "5.4", name: "the request bucket starts full, and a refusal takes nothing", items: is(buckets), own: true, run: requestBucket},
		{section: "5.4", name: "the message bucket counts items", items: is(buckets), own: true, run: messageBucket},
		{section: "5.4", name: "overrides: null is unlimited, another type is the plan's", items: is(buckets), own: true, run: overrides},
		{section: "3.2", name: "retention above the plan", items: is(blocks), own: true, run: func(p *probe) {
			t := p.cluster("free", "{}")
			p.refused(p.post(t.key, "/api/v1/configure", `{"queue":"q","retentionEnabled":true,"retentionSeconds":999999}`),
				403, "quota_exceeded", "retentionSeconds of 999999s exceeds the plan's max_retention_seconds (604800s)")
			p.refused(p.post(t.key, "/api/v1/configure", `{"queue":"q","options":{"completedRetentionSeconds":"604801"}}`),
				403, "quota_exceeded", "completedRetentionSeconds of 604801s exceeds the plan's max_retention_seconds (604800s)")
			p.status(p.post(t.key, "/api/v1/configure", `{"queue":"q","retentionSeconds":604800}`), 200)
		}},
		{section: "5.5", name: "the queue limit", items: is(blocks), own: true, run: func(p *probe) {
			t := p.cluster("free", `{"max_queues":2}`)
			p.want2xx(p.post(t.key, "/api/v1/configure", `{"queue":"a"}`))
			p.want2xx(p.push(t.key, rec("b", "0", "1")))
			p.refused(p.post(t.key, "/api/v1/configure", `{"queue":"c"}`), 403, "quota_exceeded", "queue limit reached (2)")
			p.refused(p.push(t.key, rec("c", "0", "1")), 403, "quota_exceeded", "queue limit reached (2)")
			p.want2xx(p.call("DELETE", "/api/v1/resources/queues/a", t.key, ""))
			p.want2xx(p.push(t.key, rec("c", "0", "1")))
		}},
		{section: "5.5", name: "the partition limit counts names, Default too", items: is(blocks), sure: inferred, own: true, run: func(p *probe) {
			t := p.cluster("free", `{"max_req_per_sec":null}`)
			p.want2xx(p.post(t.key, "/api/v1/configure", `{"queue":"q"}`))
			for n := range 7 {
				p.want2xx(p.push(t.key, rec("q", fmt.Sprint(n), "1")))
			}
			p.refused(p.push(t.key, rec("q", "0", "1")+","+rec("q", "7", "1")), 403, "quota_exceeded", "partition limit reached (8)")
			p.eq(p.fetch(t.key, "q", "0", 0), "entries.0.highWatermark", "1")
		}},
		{section: "5.5", name: "a storage cap of 64 bytes, and its end", items: is(blocks), own: true, run: storageCap},
		{section: "5.5", name: "the monthly quota, until the month ends", items: is(blocks), own: true, run: monthlyQuota},
		{section: "4.7", name: "rates of keys, read and written apart", items: is(keys, buckets), own: true, run: keyRates},
		{section: "4.7", name: "a used-up grant stops puts alone, and ends at 90 %", items: is(keys, blocks), own: true, run: keyGrant},
		{section: "5.6", name: "rows for each cluster, minute and class", items: is(metering), own: true, run: meteringRows},
		{section: "5.6", name: "what the proxy refuses is not metered", items: is(metering), own: true, run: notMetered},
	}
}

func planTable(p *probe) {
	for plan, limits := range map[string][3]int{"free": {1000, 262_144, 8}, "dev": {2000, 524_288, 16}, "pro": {5000, 1_048_576, 32}, "dedicated-s": {10_000, 4_194_304, 64}} {
		t := p.cluster(plan, `{"max_msgs_per_sec":null,"max_req_per_sec":null}`)
		p.refused(p.push(t.key, strings.TrimSuffix(strings.Repeat(rec("q", "0", "1")+",", limits[0]+1), ",")), 413, "payload_too_large",
			fmt.Sprintf("batch of %d items exceeds max_batch_items (%d)", limits[0]+1, limits[0]))
		p.refused(p.push(t.key, rec("q", "0", `"`+strings.Repeat("x", limits[1]-1)+`"`)), 413, "payload_too_large",
			fmt.Sprintf("item 0: payload %d bytes exceeds max_payload_bytes (%d)", limits[1]+1, limits[1]))
		items := make([]string, limits[2]+1)
		for i := range items {
			items[i] = rec("q", fmt.Sprint(i), "1")
		}
		p.refused(p.push(t.key, strings.Join(items, ",")), 403, "quota_exceeded", fmt.Sprintf("partition limit reached (%d)", limits[2]))
		p.status(p.push(t.key, strings.Join(items[1:], ",")), 201)
	}
	t := p.cluster("free", `{"max_batch_items":null,"max_msgs_per_sec":null}`)
	p.refused(p.push(t.key, strings.TrimSuffix(strings.Repeat(rec("q", "0", "1")+",", 10_001), ",")), 413, "payload_too_large", "batch of 10001 items exceeds max_batch_items (10000)")
}

func requestBucket(p *probe) {
	t := p.cluster("free", `{"max_req_per_sec":0.01,"req_burst":3}`)
	for range 3 {
		p.status(p.get(t.key, lanes), 200)
	}
	for range 3 {
		r := p.get(t.key, lanes)
		p.refused(r, 429, "rate_limited", "request rate limit exceeded")
		if r.header.Get("Retry-After") != "60" {
			p.errorf("Retry-After %s", r.header.Get("Retry-After"))
		}
	}
	p.pass(101 * time.Second)
	p.status(p.fetch(t.key, "q", "0", 0), 200)
	p.refused(p.fetch(t.key, "q", "0", 0), 429, "rate_limited", "request rate limit exceeded")
	t.limit(`{"max_req_per_sec":0,"req_burst":0}`)
	if r := p.get(t.key, lanes); r.header.Get("Retry-After") != "60" {
		p.errorf("no refill: Retry-After %s", r.header.Get("Retry-After"))
	}
}

func messageBucket(p *probe) {
	t := p.cluster("free", `{"max_msgs_per_sec":0.5,"msgs_burst":3}`)
	two := rec("q", "0", "1") + "," + rec("q", "0", "2")
	p.status(p.push(t.key, two), 201)
	r := p.push(t.key, two)
	p.refused(r, 429, "rate_limited", "message rate limit exceeded")
	if r.header.Get("Retry-After") != "2" {
		p.errorf("Retry-After %s", r.header.Get("Retry-After"))
	}
	p.refused(p.post(t.key, "/api/v1/transaction", `{"operations":[{"type":"push","items":[`+two+`]}],"kv":[]}`), 429, "rate_limited", "message rate limit exceeded")
	p.eq(p.fetch(t.key, "q", "0", 0), "entries.0.highWatermark", "2")
	p.pass(3 * time.Second)
	p.status(p.push(t.key, two), 201)
}

func overrides(p *probe) {
	t := p.cluster("free", `{"max_batch_items":2,"max_payload_bytes":"8","max_msgs_per_sec":null}`)
	p.refused(p.push(t.key, rec("q", "0", "1")+","+rec("q", "0", "1")+","+rec("q", "0", "1")), 413, "payload_too_large", "batch of 3 items exceeds max_batch_items (2)")
	p.status(p.push(t.key, rec("q", "0", `"longer than eight"`)), 201)
	t.limit(`{"max_payload_bytes":null,"max_msgs_per_sec":null}`)
	p.status(p.push(t.key, rec("q", "0", `"`+strings.Repeat("x", 300_000)+`"`)), 201)
}

func storageCap(p *probe) {
	t := p.cluster("local", "{}")
	p.want2xx(p.push(t.key, rec("q", "0", `"`+strings.Repeat("x", 100)+`"`)))
	t.limit(`{"max_retained_bytes":64}`)
	p.cell.Reconcile()
	const text = "storage quota exceeded; pushes blocked"
	p.refused(p.push(t.key, rec("q", "0", "1")), 403, "storage_quota_exceeded", text)
	p.refused(p.post(t.key, "/api/v1/transaction", `{"operations":[],"kv":[]}`), 403, "storage_quota_exceeded", text)
	t.spared()
	t.limit("{}")
	p.cell.Reconcile()
	p.status(p.push(t.key, rec("q", "0", "1")), 201)

	// What was accepted since the last measure counts at once.
	t = p.cluster("local", `{"max_retained_bytes":64}`)
	p.want2xx(p.push(t.key, rec("q", "0", `"`+strings.Repeat("x", 62)+`"`)))
	p.refused(p.push(t.key, rec("q", "0", "1")), 403, "storage_quota_exceeded", text)
	t.limit(`{"max_retained_bytes":70}`) // 64 stored: above 90 % of it
	p.cell.Reconcile()
	p.refused(p.push(t.key, rec("q", "0", "1")), 403, "storage_quota_exceeded", text)
	t.limit(`{"max_retained_bytes":72}`)
	p.cell.Reconcile()
	p.status(p.push(t.key, rec("q", "0", "1")), 201)
}

func monthlyQuota(p *probe) {
	t := p.cluster(monthly, "{}")
	p.want2xx(p.push(t.key, rec("q", "0", "1")+","+rec("q", "0", "2")))
	p.cell.Reconcile()
	p.refused(p.push(t.key, rec("q", "0", "1")), 403, "quota_exceeded", "monthly message quota (monthly_msgs_quota) exhausted; pushes blocked until the next calendar month")
	t.spared()
	p.pass(31 * 24 * time.Hour)
	p.cell.Reconcile()
	p.status(p.push(t.key, rec("q", "0", "1")), 201)
}

// usage is a cluster's metering by class.
func (t tenant) usage() map[string]cell.UsageInfo {
	shown, err := t.p.cell.Admin().Do(cell.AdminRequest{Op: cell.OpUsage, Cluster: t.slug, By: "month"})
	t.p.must(err)
	by := map[string]cell.UsageInfo{}
	for _, row := range shown.Usage {
		by[row.Class] = row
	}
	return by
}

func meteringRows(p *probe) {
	t, other := p.cluster("local", "{}"), p.cluster("local", "{}")
	body := `{"items":[` + rec("q", "0", "1") + "," + rec("q", "0", "2") + `]}`
	push := p.want2xx(p.post(t.key, "/api/v1/push", body))
	fetch := p.fetch(t.key, "q", "0", 0)
	p.want2xx(p.post(t.key, "/api/v1/transaction", `{"operations":[{"type":"push","items":[`+rec("q", "0", "3")+`]}],"kv":[]}`))
	p.want2xx(p.post(t.key, "/api/v1/transaction", `{"operations":[],"kv":[`+p.put("qk:a", "1", `,"expect":9,"required":true`)+`]}`))
	p.want2xx(p.post(t.key, "/api/v1/configure", `{"queue":"c"}`))
	p.want2xx(p.call("DELETE", "/api/v1/resources/queues/c", t.key, ""))
	p.want2xx(p.push(other.key, rec("q", "0", "1")))
	by := t.usage()
	if row := by["push"]; row.Reqs != 1 || row.Msgs != 2 || row.BytesIn != int64(len(body)) || row.BytesOut != int64(len(push.body)) {
		p.errorf("push %+v", row)
	}
	if row := by["read"]; row.Reqs != 1 || row.Msgs != 0 || row.BytesIn != 0 || row.BytesOut != int64(len(fetch.body)) {
		p.errorf("read %+v", row)
	}
	if row := by["txn"]; row.Reqs != 2 || row.Msgs != 1 {
		p.errorf("txn %+v", row)
	}
	if row := by["configure"]; row.Reqs != 2 || row.Msgs != 0 || row.BytesIn != int64(len(`{"queue":"c"}`)) {
		p.errorf("configure %+v", row)
	}
	if row := other.usage()["push"]; row.Reqs != 1 || row.Msgs != 1 {
		p.errorf("the other cluster's push %+v", row)
	}
}

func notMetered(p *probe) {
	t := p.cluster("free", `{"max_batch_items":1,"max_req_per_sec":0,"req_burst":1}`)
	p.refused(p.push(t.scoped("read"), rec("q", "0", "1")), 403, "forbidden", "")
	p.refused(p.push(t.key, rec("q", "0", "1")+","+rec("q", "0", "1")), 413, "payload_too_large", "")
	p.refused(p.get(t.key, lanes), 429, "rate_limited", "")
	p.refused(p.get(t.key, "/api/v1/nope"), 404, "route_blocked", "")
	p.status(p.get(t.key, "/auth/me"), 200)
	if by := t.usage(); len(by) != 0 {
		p.errorf("%+v", by)
	}
}

// keyRates: a call takes a token of each kind, however many operations it has.
func keyRates(p *probe) {
	t := p.cluster("local", `{"kv_reads_per_sec":0.001,"kv_reads_burst":2,"kv_writes_per_sec":0.001,"kv_writes_burst":1}`)
	limited := func(r reply, what string) {
		p.status(r, 429)
		p.eq(r, "error", "rate_limited", "detail", what+" rate limit exceeded")
		if after := r.header.Get("Retry-After"); after != "60" {
			p.errorf("Retry-After %q", after)
		}
	}
	read := `{"op":"getMany","ns":"queen-kafka","keys":["qk:a"]}`
	p.want2xx(p.kv(t.key, p.put("qk:a", "1", "")+","+p.put("qk:b", "1", "")+","+read))
	limited(p.kv(t.key, p.put("qk:a", "2", "")), "write")
	limited(p.post(t.key, "/api/v1/transaction", `{"operations":[],"kv":[`+p.put("qk:a", "2", "")+`]}`), "write")
	limited(p.kv(t.key, `{"op":"delete","ns":"queen-kafka","key":"qk:a"}`), "write")
	p.eq(p.kv(t.key, read), "results.0.rows.0.value", "1")
	limited(p.kv(t.key, read), "read")
	p.want2xx(p.push(t.key, rec("q", "0", "1")))
	t.limit(`{}`)
	p.want2xx(p.kv(t.key, p.put("qk:a", "2", "")))
	free := p.cluster("free", `{"max_req_per_sec":null}`)
	for range 200 {
		p.want2xx(p.kv(free.key, p.put("qk:a", "1", "")))
	}
	p.pass(time.Second)
	p.want2xx(p.kv(free.key, p.put("qk:a", "1", "")))
}

func keyGrant(p *probe) {
	t := p.cluster("local", `{"kv_max_rows":10}`)
	row := func(n int) string { return p.put(fmt.Sprintf("qk:%d", n), "1", "") }
	del := func(n int) string { return fmt.Sprintf(`{"op":"delete","ns":"queen-kafka","key":"qk:%d"}`, n) }
	for n := range 11 {
		p.want2xx(p.kv(t.key, row(n)))
	}
	refused := func() {
		r := p.kv(t.key, row(0))
		p.status(r, 403)
		p.eq(r, "error", "kv_quota_exceeded")
		if r.header.Get("Retry-After") != "" {
			p.errorf("Retry-After")
		}
	}
	refused()
	p.status(p.post(t.key, "/api/v1/transaction", `{"operations":[],"kv":[`+row(0)+`]}`), 403)
	p.eq(p.kv(t.key, `{"op":"getMany","ns":"queen-kafka","keys":["qk:0"]}`), "results.0.rows.0.value", "1")
	p.want2xx(p.kv(t.key, del(0)))
	refused() // at the cap, and not at 90 % of it
	p.want2xx(p.kv(t.key, del(1)))
	p.want2xx(p.kv(t.key, row(0)))
}
