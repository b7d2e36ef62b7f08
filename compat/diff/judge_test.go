package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestListed holds the list against the page that gives the reasons: what
// clients decide by is listed by its case and its two values, never by a
// pattern for anything.
func TestListed(t *testing.T) {
	docs, err := os.ReadFile("../../docs/DEVIATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range deliberate() {
		if !hasRow(string(docs), e.Row) {
			t.Errorf("no row %q", e.Row)
		}
		for _, path := range []string{"outcome", "ErrorCode", "Topics[a].ErrorCode", "Topics[a].Partitions[0].ErrorCode", "Coordinators[a].ErrorCode"} {
			if glob(e.Path, path) && (e.Case == "" || strings.Contains(e.Ours+e.Theirs, "*")) {
				t.Errorf("%s %s (%s): a code or outcome wants a case and both values", e.API, e.Path, e.Row)
			}
		}
	}
	for _, r := range rules() {
		if r.Why == "" {
			t.Errorf("the rule for %s %s has no reason", r.API, r.Path)
		}
	}
}

func metadataAnswer(code int16, port int32) reply {
	resp := kmsg.NewPtrMetadataResponse()
	resp.Version = 9
	b := kmsg.NewMetadataResponseBroker()
	b.Port = port
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic, topic.ErrorCode = kmsg.StringPtr("t"), code
	resp.Brokers, resp.Topics = append(resp.Brokers, b), append(resp.Topics, topic)
	return reply{outcome: answered, resp: resp}
}

// TestJudge shows that nothing passes unseen: a code, an outcome, a rule or an
// entry that is not used, a row that is gone.
func TestJudge(t *testing.T) {
	port := rule{"*", "*.Port", "own port", func(string, side) string { return "own" }}
	listed := entry{API: "Metadata", Case: "c", Path: "Topics[*].ErrorCode", Ours: "3", Theirs: "5", Row: "Row"}
	anyCode := rule{"*", "*", "everything", func(string, side) string { return "same" }}
	const docs = "| Apache | ours | why |\n|---|---|---|\n| Row | ours | why |\n"
	for _, test := range []struct {
		name    string
		rules   []rule
		listed  []entry
		docs    string
		a, b    reply
		ok      bool
		printed string
	}{
		{"equal", nil, nil, docs, metadataAnswer(0, 1), metadataAnswer(0, 1), true, "requests=1 differences=0"},
		{"a port", []rule{port}, nil, docs, metadataAnswer(0, 1), metadataAnswer(0, 2), true, "differences=0"},
		{"a port without a rule", nil, nil, docs, metadataAnswer(0, 1), metadataAnswer(0, 2), false, "NOT LISTED Metadata Brokers[0].Port"},
		{"an unused rule", []rule{port}, nil, docs, metadataAnswer(0, 1), metadataAnswer(0, 1), false, "is not used"},
		{"a code", nil, nil, docs, metadataAnswer(3, 1), metadataAnswer(5, 1), false, "NOT LISTED Metadata Topics[t].ErrorCode"},
		{"a code under a rule for all", []rule{anyCode, port}, nil, docs, metadataAnswer(3, 1), metadataAnswer(5, 2), false, "NOT LISTED Metadata Topics[t].ErrorCode"},
		{"a listed code", nil, []entry{listed}, docs, metadataAnswer(3, 1), metadataAnswer(5, 1), true, "listed=1 unexplained=0"},
		{"a listed code, other values", nil, []entry{listed}, docs, metadataAnswer(3, 1), metadataAnswer(6, 1), false, "unexplained=1"},
		{"an unused entry", nil, []entry{listed}, docs, metadataAnswer(0, 1), metadataAnswer(0, 1), false, "does not occur"},
		{"a row that is gone", nil, []entry{listed}, "", metadataAnswer(3, 1), metadataAnswer(5, 1), false, "has no row"},
		{"a close", nil, nil, docs, metadataAnswer(0, 1), reply{outcome: closed}, false, "NOT LISTED Metadata outcome"},
		{"both close", nil, nil, docs, reply{outcome: closed}, reply{outcome: closed}, true, "differences=0"},
		{"undecodable on both sides", nil, nil, docs, reply{outcome: garbled}, reply{outcome: garbled}, false, "undecodable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := &judge{docs: test.docs}
			for _, r := range test.rules {
				j.rules = append(j.rules, countedRule{rule: r})
			}
			for _, e := range test.listed {
				j.listed = append(j.listed, countedEntry{entry: e})
			}
			j.take(where{"Metadata", 9, "c"}, test.a, test.b, side{}, side{})
			var out bytes.Buffer
			if ok := j.report(&out, options{}); ok != test.ok || !strings.Contains(out.String(), test.printed) {
				t.Errorf("ok %v, want %v and %q in\n%s", ok, test.ok, test.printed, &out)
			}
			if !strings.HasSuffix(strings.TrimSpace(out.String()), " failed") {
				t.Errorf("the last line is missing:\n%s", &out)
			}
		})
	}
}

// TestOrder: entries are matched by name; another order is one difference.
func TestOrder(t *testing.T) {
	one, two := metadataAnswer(0, 1).resp.(*kmsg.MetadataResponse), metadataAnswer(0, 1).resp.(*kmsg.MetadataResponse)
	other := one.Topics[0]
	other.Topic = kmsg.StringPtr("u")
	one.Topics = append(one.Topics, other)
	two.Topics = append([]kmsg.MetadataResponseTopic{other}, two.Topics...)
	got := compare(where{}, flatten(one), flatten(two))
	if len(got) != 1 || got[0].path != "Topics.order" {
		t.Errorf("differences %v, want the order alone", got)
	}
	two.Topics = two.Topics[:1]
	got = compare(where{}, flatten(one), flatten(two))
	if len(got) != 1 || got[0].path != "Topics[t]" || got[0].theirs != absent {
		t.Errorf("differences %v, want one topic absent", got)
	}
}
