package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/demo"
)

// clockSlack is how far a client's own timestamps may lie outside its run.
const clockSlack = time.Minute

// judge turns what a client claims into what its evidence carries.
type judge struct {
	demo   *demo.Demo
	fix    *fixtures
	set    dataset
	checks []check
}

var (
	notAuthorized = regexp.MustCompile(`(?i)authori[sz]|\b29\b`)
	ofBadToken    = regexp.MustCompile(`not a valid token`)
	ofMissing     = regexp.MustCompile("scope `read`")
)

func (j judge) block(ctx context.Context, b *block) {
	j.complete(b)
	j.judgeRefusals(b)
	j.judgeReads(b)
	j.judgeIsolation(b)
	j.judgeGroups(ctx, b)
	j.judgeAdmin(ctx, b)
	j.judgeTransactions(ctx, b)
	for _, c := range j.checks {
		if rows := j.set.rowsOf(c.name); len(rows) > 0 && b.results[c.name].Verdict == "pass" {
			j.judgeTopic(ctx, b, c.name, rows)
		}
	}
	ends, err := endOffsets(ctx, j.demo, j.fix.readTopic)
	if err != nil {
		b.problems = append(b.problems, "the topic that clients read: "+err.Error())
	} else if n := int64(len(j.fix.read)); ends[0] != n {
		b.problems = append(b.problems, fmt.Sprintf("the topic that clients read has %d records, want %d", ends[0], n))
	}
}

// complete sees to it that each check has one result, and nothing else has.
func (j judge) complete(b *block) {
	known := map[string]bool{}
	for _, c := range j.checks {
		known[c.name] = true
		if _, ok := b.results[c.name]; !ok {
			b.results[c.name] = result{"fail", "not reported"}
		}
	}
	for _, name := range sortedKeys(b.results) {
		if !known[name] {
			b.problems = append(b.problems, "unknown check: "+name)
			delete(b.results, name)
		}
	}
	things := []string{"said.bad-token", "said.missing-scope", "said.admin-configs", "member.admin-groups", "delete.admin-groups", "read.key", "read.value", "read.timestamp", "read.headers", "read.null", "balance"}
	for _, what := range sortedKeys(b.cannot) {
		if !j.set.has(what) && !slices.Contains(things, what) {
			b.problems = append(b.problems, "cannot: nothing is called "+what)
		}
	}
}

func (j judge) judgeRefusals(b *block) {
	for check, want := range map[string]*regexp.Regexp{
		"bad-token": ofBadToken, "missing-scope": ofMissing,
		"scope-produce": notAuthorized, "scope-consume": notAuthorized,
		"admin-configs": ofRefused, "txn-fenced": ofFenced,
	} {
		said, cannot := b.said[check], b.cannot["said."+check]
		switch {
		case said == "":
			b.refute(check, "it does not show what the client said")
		case want.MatchString(said) && cannot != "":
			b.refute(check, "it says that the sentence cannot be shown, and shows it")
		case !want.MatchString(said) && cannot == "":
			b.refute(check, "what the client said does not hold /%s/: %s", want, said)
		}
	}
}

func (j judge) judgeReads(b *block) {
	want := map[string][]readLine{
		"consume": make([]readLine, len(j.fix.read)),
		"by-time": {{half, j.fix.afterTime}},
	}
	for i, f := range j.fix.read {
		want["consume"][i] = readLine{int64(i), f}
	}
	want["seek"] = []readLine{want["consume"][5], want["consume"][1]}
	for check, lines := range want {
		if why := j.compareReads(b, b.reads[check], lines); why != "" {
			b.refute(check, "%s", why)
		}
	}
}

// compareReads compares records that a client says it read; "" if they are the
// ones that were written.
func (j judge) compareReads(b *block, got, want []readLine) string {
	if len(got) != len(want) {
		return fmt.Sprintf("it read %d records, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].offset != want[i].offset {
			return fmt.Sprintf("record %d has offset %d, want %d", i, got[i].offset, want[i].offset)
		}
		mask, why := b.unseen(got[i].fields)
		if why == "" {
			expected, read := want[i].fields, got[i].fields
			if b.cannot["read.null"] != "" {
				expected, read = expected.nullIsEmpty(), read.nullIsEmpty()
			}
			why = expected.differs(read, mask)
		}
		if why != "" {
			return fmt.Sprintf("offset %d: %s", want[i].offset, why)
		}
	}
	return ""
}

// unseen names the fields that a client cannot show. A question mark without an
// explanation is an error, and so is an explanation for what is shown.
func (b *block) unseen(f fields) (mask map[string]bool, why string) {
	mask = map[string]bool{}
	for name, text := range f.named() {
		mask[name] = text == "?"
		if mask[name] && b.cannot["read."+name] == "" {
			return nil, "the " + name + " is ?, and no cannot line says why"
		}
	}
	return mask, ""
}

func (f fields) named() map[string]string {
	return map[string]string{"key": f.key, "value": f.value, "timestamp": f.timestamp, "headers": f.headers}
}

// nullIsEmpty is for clients that show both alike.
func (f fields) nullIsEmpty() fields {
	same := func(s string) string {
		if s == "null" {
			return "x"
		}
		return s
	}
	f.key, f.value = same(f.key), same(f.value)
	headers := strings.Split(f.headers, ",")
	for i, h := range headers {
		if name, value, ok := strings.Cut(h, "="); ok {
			headers[i] = name + "=" + same(value)
		}
	}
	f.headers = strings.Join(headers, ",")
	return f
}

// differs says how other is not f, without the fields of mask.
func (f fields) differs(other fields, mask map[string]bool) string {
	theirs, ours := other.named(), f.named()
	for _, name := range sortedKeys(ours) {
		if !mask[name] && ours[name] != theirs[name] {
			return fmt.Sprintf("%s %s, want %s", name, short(theirs[name]), short(ours[name]))
		}
	}
	return ""
}

// short is a field for people.
func short(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%s… (%d characters)", s[:most], len(s))
	}
	return s
}

func (j judge) judgeIsolation(b *block) {
	got := b.reads["isolation"]
	if len(got) == 0 && len(b.listed) == 0 {
		b.refute("isolation", "it neither read nor listed")
		return
	}
	if len(got) > 0 {
		if why := j.compareReads(b, got, []readLine{{0, j.fix.ofGlobex}}); why != "" {
			b.refute("isolation", "%s", why)
		}
	}
	if len(b.listed) == 0 {
		return
	}
	var names []string
	for _, topic := range b.listed {
		if strings.HasPrefix(topic, j.fix.run) {
			names = append(names, topic)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, j.fix.globexNames) {
		b.refute("isolation", "globex lists %v, want %v", names, j.fix.globexNames)
	}
}

// judgeTopic compares what a client wrote with what it was to write.
func (j judge) judgeTopic(ctx context.Context, b *block, check string, rows []row) {
	topic := b.topics[check]
	if !strings.HasPrefix(topic, j.fix.run+"-") {
		b.refute(check, "its topic %q does not start with the run's prefix", topic)
		return
	}
	got, err := readBack(ctx, j.demo, topic)
	if err != nil {
		b.refute(check, "read back: %v", err)
		return
	}
	j.compareTopic(b, check, rows, got)
}

// compareTopic compares record by record; the first difference is told.
func (j judge) compareTopic(b *block, check string, rows []row, got []*kgo.Record) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return b.cannot[r.id] != "" })
	if len(rows) == 0 {
		b.refute(check, "it cannot write any of its lines: that is a skip")
		return
	}
	for i, r := range rows {
		if i >= len(got) {
			b.refute(check, "the topic ends before %s: %d records, want %d", r.id, len(got), len(rows))
			return
		}
		f := fieldsOf(got[i])
		if r.now && !during(got[i].Timestamp, b.start, b.end) {
			b.refute(check, "%s: timestamp %s is not of the time of the run", r.id, f.timestamp)
		}
		if why := r.fields.differs(f, map[string]bool{"timestamp": r.now}); why != "" {
			b.refute(check, "%s: %s", r.id, why)
		}
	}
	if len(got) > len(rows) {
		b.refute(check, "%d records, want %d", len(got), len(rows))
	}
}

func during(at, start, end time.Time) bool {
	return at.After(start.Add(-clockSlack)) && at.Before(end.Add(clockSlack))
}
