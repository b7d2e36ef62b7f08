package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The list, the data set and the page that explains them go together.
func TestListAndDataset(t *testing.T) {
	checks, err := readChecks("../checks.txt")
	if err != nil {
		t.Fatal(err)
	}
	set, err := readDataset("../dataset.tsv")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"codec": true}
	for _, c := range checks {
		if names[c.name] || c.proves == "" {
			t.Errorf("check %q is listed twice, or proves nothing", c.name)
		}
		names[c.name] = true
	}
	for _, r := range set {
		if !names[r.check] {
			t.Errorf("line %s belongs to no check", r.id)
		}
	}
	for _, check := range append(slices.Clone(readChecksOf), "codec-zstd", "create-by-produce", "idempotent") {
		if len(set.rowsOf(check)) == 0 {
			t.Errorf("%s has no lines", check)
		}
	}
}

func TestForms(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"c\ti\tnull\tx\t5\tnone", "null x 5 none"},
		{"c\ti\tr3\tx00ff\tnow\tx61=null,x=x,x61=r2", "x616263 x00ff now x61=null,x=x,x61=x6162"},
		{"c\ti\tr28\tr0\t0\tnone", "x" + "6162636465666768696a6b6c6d6e6f707172737475767778797a" + "6162 x 0 none"},
	} {
		r, err := parseRow(c.line)
		got := strings.Join([]string{r.fields.key, r.fields.value, r.fields.timestamp, r.fields.headers}, " ")
		if err != nil || got != c.want {
			t.Errorf("%q is %q (%v), want %q", c.line, got, err, c.want)
		}
		// What is written and read again is the same.
		rec, err := r.record("t")
		if err != nil {
			t.Fatal(err)
		}
		again := fieldsOf(rec)
		if why := r.fields.differs(again, map[string]bool{"timestamp": r.now}); why != "" {
			t.Errorf("%q as a record: %s", c.line, why)
		}
	}
	for _, line := range []string{
		"", "c\ti\tnull\tx\tnow", "c\ti\t\tx\tnow\tnone", "c\ti\tx0\tx\tnow\tnone", "c\ti\tr\tx\tnow\tnone",
		"c\ti\tr-1\tx\tnow\tnone", "c\ti\tr99999999\tx\tnow\tnone", "c\ti\tx\tx\tsoon\tnone", "c\ti\tx\tx\tnow\tx61",
	} {
		if _, err := parseRow(line); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

// TestReport: what a client prints becomes blocks; nothing is quietly dropped.
func TestReport(t *testing.T) {
	j := judge{checks: []check{{"a", "x"}, {"b", "x"}, {"c", "x"}}}
	for _, c := range []struct {
		name, text             string
		blocks                 int
		pass, fail, skip       int
		problem                string
		ofFirst, whyOfItsFirst string
	}{
		{name: "silence", blocks: 1, fail: 3, ofFirst: "a", whyOfItsFirst: "not reported"},
		{name: "all", text: "client n 1\npass a\nfail b: it: broke\nskip c: no way\n", blocks: 1, pass: 1, fail: 1, skip: 1, ofFirst: "b", whyOfItsFirst: "it: broke"},
		{name: "two versions", text: "client n 1\npass a\npass b\npass c\nclient n 2\npass a\n", blocks: 2, pass: 4, fail: 2},
		{name: "carriage returns", text: "client n 1\r\npass a\r\npass b\r\npass c\r\n", blocks: 1, pass: 3},
		{name: "twice", text: "client n 1\npass a\npass b\npass c\npass a\n", blocks: 1, pass: 3, fail: 1, problem: "twice"},
		{name: "unknown", text: "client n 1\npass a\npass b\npass c\npass d\n", blocks: 1, pass: 3, fail: 1, problem: "unknown check: d"},
		{name: "no reason", text: "client n 1\npass a\npass b\nskip c\n", blocks: 1, pass: 2, fail: 2, problem: "needs a reason"},
		{name: "chatter", text: "hello\nclient n 1\npass a\npass b\npass c\n", blocks: 2, pass: 3, fail: 4, problem: "unknown line"},
		{name: "half a read", text: "client n 1\npass a\npass b\npass c\nread a 0 x\n", blocks: 1, pass: 3, fail: 1, problem: "six words"},
		{name: "cannot what", text: "client n 1\npass a\npass b\npass c\ncannot fly: no wings\n", blocks: 1, pass: 3, fail: 1, problem: "nothing is called fly"},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocks := parseReport("folder", c.text)
			sum := map[string]int{}
			var problems []string
			for _, b := range blocks {
				j.complete(b)
				for _, v := range verdicts {
					sum[v] += b.count(v)
				}
				problems = append(problems, b.problems...)
			}
			if len(blocks) != c.blocks || sum["pass"] != c.pass || sum["fail"] != c.fail || sum["skip"] != c.skip {
				t.Errorf("%d blocks, %v; want %d, pass %d fail %d skip %d", len(blocks), sum, c.blocks, c.pass, c.fail, c.skip)
			}
			if !strings.Contains(strings.Join(problems, "\n"), c.problem) || (len(problems) == 0) != (c.problem == "") {
				t.Errorf("problems %q, want %q", problems, c.problem)
			}
			if c.ofFirst != "" && blocks[0].results[c.ofFirst].Why != c.whyOfItsFirst {
				t.Errorf("%s: %q, want %q", c.ofFirst, blocks[0].results[c.ofFirst].Why, c.whyOfItsFirst)
			}
		})
	}
}

// TestTopic: what a client wrote is not what it says it wrote.
func TestTopic(t *testing.T) {
	rows := []row{
		{id: "one", fields: fields{"x6b", "null", "7", "x61=x31,x61=null"}},
		{id: "two", fields: fields{"null", "x", "now", "none"}, now: true},
	}
	good := func() []*kgo.Record {
		return []*kgo.Record{
			{
				Key: []byte("k"), Timestamp: time.UnixMilli(7),
				Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a"}},
			},
			{Value: []byte{}, Timestamp: time.Now()},
		}
	}
	for _, c := range []struct {
		name   string
		change func([]*kgo.Record) []*kgo.Record
		cannot string
		want   string // "" is a pass
	}{
		{name: "as it was"},
		{name: "empty for null", change: edit(func(r []*kgo.Record) { r[0].Value = []byte{} }), want: "one: value x, want null"},
		{name: "null for empty", change: edit(func(r []*kgo.Record) { r[1].Value = nil }), want: "two: value null, want x"},
		{name: "headers turned", change: edit(func(r []*kgo.Record) { slices.Reverse(r[0].Headers) }), want: "one: headers x61=null,x61=x31"},
		{name: "a header lost", change: edit(func(r []*kgo.Record) { r[0].Headers = r[0].Headers[:1] }), want: "one: headers"},
		{name: "another time", change: edit(func(r []*kgo.Record) { r[0].Timestamp = time.UnixMilli(8) }), want: "one: timestamp 8, want 7"},
		{name: "no time", change: edit(func(r []*kgo.Record) { r[1].Timestamp = time.UnixMilli(-1) }), want: "two: timestamp -1 is not"},
		{name: "turned", change: edit(slices.Reverse[[]*kgo.Record]), want: "one: "},
		{name: "one lost", change: func(r []*kgo.Record) []*kgo.Record { return r[:1] }, want: "ends before two"},
		{name: "one twice", change: func(r []*kgo.Record) []*kgo.Record { return append(r, r[1]) }, want: "3 records, want 2"},
		{name: "one it cannot", change: func(r []*kgo.Record) []*kgo.Record { return r[1:] }, cannot: "one"},
		{name: "one it cannot and did", cannot: "one", want: "two: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBlock("n", "1")
			b.start, b.end = time.Now(), time.Now()
			b.results["c"] = result{Verdict: "pass"}
			if c.cannot != "" {
				b.cannot[c.cannot] = "for a reason"
			}
			records := good()
			if c.change != nil {
				records = c.change(records)
			}
			judge{}.compareTopic(b, "c", rows, records)
			got := b.results["c"]
			if (got.Verdict == "pass") != (c.want == "") || !strings.Contains(got.Why, c.want) {
				t.Errorf("%v, want %q", got, c.want)
			}
		})
	}
}

func edit(f func([]*kgo.Record)) func([]*kgo.Record) []*kgo.Record {
	return func(r []*kgo.Record) []*kgo.Record {
		f(r)
		return r
	}
}

// TestClaims: reads, refusals and listings without the evidence are fails.
func TestClaims(t *testing.T) {
	j := judge{fix: &fixtures{
		run: "c1", globexNames: []string{"c1-read"}, afterTime: fields{"null", "x35", "9", "none"},
		ofGlobex: fields{"x67", "x67", "1", "none"},
	}}
	for i := range 7 {
		j.fix.read = append(j.fix.read, fields{"null", form([]byte{byte(i)}), "1", "x61=null"})
	}
	const time5 = "read by-time 5 null x35 9 none\n"
	for _, c := range []struct {
		name, check, text string
		pass              bool
	}{
		{"time", "by-time", time5, true},
		{"no evidence", "by-time", "", false},
		{"other offset", "by-time", "read by-time 4 null x35 9 none\n", false},
		{"other value", "by-time", "read by-time 5 null x36 9 none\n", false},
		{"one too many", "by-time", time5 + time5, false},
		{"unexplained question mark", "by-time", "read by-time 5 ? x35 9 none\n", false},
		{"explained question mark", "by-time", "cannot read.key: no\nread by-time 5 ? x35 9 none\n", true},
		{"empty for null", "by-time", "read by-time 5 x x35 9 none\n", false},
		{"empty for null, explained", "by-time", "cannot read.null: no\nread by-time 5 x x35 9 none\n", true},
		{"seek", "seek", "read seek 5 null x05 1 x61=null\nread seek 1 null x01 1 x61=null\n", true},
		{"header null as empty", "seek", "cannot read.null: no\nread seek 5 null x05 1 x61=x\nread seek 1 x x01 1 x61=x\n", true},
		{"seek in the wrong order", "seek", "read seek 1 null x01 1 x61=null\nread seek 5 null x05 1 x61=null\n", false},
		{"globex reads", "isolation", "read isolation 0 x67 x67 1 none\n", true},
		{"globex reads acme's", "isolation", "read isolation 0 null x00 1 x61=null\n", false},
		{"globex lists", "isolation", "list old\nlist c1-read\n", true},
		{"globex lists acme's", "isolation", "list c1-read\nlist c1-time\n", false},
		{"globex lists too little", "isolation", "list old\n", false},
		{"globex sees nothing", "isolation", "", false},
		{"refusal", "bad-token", "said bad-token the password is not a valid token\n", true},
		{"refusal without words", "bad-token", "", false},
		{"refusal in own words", "bad-token", "said bad-token timed out\n", false},
		{"refusal in own words, explained", "bad-token", "said bad-token timed out\ncannot said.bad-token: no\n", true},
		{"explained and shown", "bad-token", "said bad-token not a valid token\ncannot said.bad-token: no\n", false},
		{"scope", "scope-produce", "said scope-produce Topic authorization failed\n", true},
		{"scope by number", "scope-produce", "said scope-produce error 29\n", true},
		{"no scope", "scope-produce", "said scope-produce timed out\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := parseReport("n", "client n 1\n"+c.text+"pass "+c.check+"\n")[0]
			j.judgeRefusals(b)
			j.judgeReads(b)
			j.judgeIsolation(b)
			if got := b.results[c.check]; (got.Verdict == "pass") != c.pass {
				t.Errorf("%v, want pass %v", got, c.pass)
			}
		})
	}
}
