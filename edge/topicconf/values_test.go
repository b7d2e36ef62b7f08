package topicconf

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func text(s string) *string { return &s }

// Every way of setting goes through the same rules; the wire's tests walk all
// keys, so here only what the wire cannot show.
func TestApplyLeavesTheOldValues(t *testing.T) {
	before := Values{RetentionMs: "5000"}
	after, err := before.Apply([]Change{{Name: RetentionMs, Op: Delete}, {Name: CleanupPolicy, Op: Append, Value: text("compact")}})
	if err != nil || len(after) != 1 || after[CleanupPolicy] != "delete,compact" || before[RetentionMs] != "5000" {
		t.Errorf("%v, %v, %v", before, after, err)
	}
	var refusal *Refusal
	if _, err := before.Apply([]Change{{Name: RetentionMs, Op: 9}}); !errors.As(err, &refusal) || !refusal.Request {
		t.Errorf("%v", err)
	}
	if _, err := Values(nil).Apply(nil); err != nil {
		t.Error(err)
	}
}

// A policy list of a million words costs no more than its first three.
func TestEndlessPolicies(t *testing.T) {
	words := strings.Repeat("a,b,", 1<<19) + "a"
	if got := policiesOf(words); len(got) != 2 {
		t.Errorf("%d policies", len(got))
	}
	if got := policiesOf("delete,compact,x," + words); len(got) != 3 {
		t.Errorf("%d policies", len(got))
	}
}

func TestRetention(t *testing.T) {
	for _, test := range []struct {
		v       Values
		seconds int64
		limited bool
		given   bool
	}{
		{Values{}, 0, false, false},
		{Values{RetentionMs: "-1"}, 0, false, true},
		{Values{RetentionMs: "5000"}, 5, true, true},
		{Values{RetentionMs: "5000", CleanupPolicy: "compact"}, 0, false, true},
		{Values{CleanupPolicy: "compact"}, 0, false, true},
		{Values{RetentionMs: "5000", CleanupPolicy: "compact,delete"}, 5, true, true},
		{Values{CleanupPolicy: "delete"}, 0, false, false},
	} {
		seconds, limited, given := test.v.Retention()
		if limited && seconds != test.seconds || limited != test.limited || given != test.given {
			t.Errorf("%v: %d, %v, %v", test.v, seconds, limited, given)
		}
	}
}

// What is sent to the cell from one state to the next: everything that is kept,
// and a null for what went.
func TestSent(t *testing.T) {
	first := First(Values{RetentionMs: "5000"}, 900)
	for _, test := range []struct {
		before Options
		v      Values
		want   string
	}{
		{nil, Values{}, `{"dedupWindowSeconds":0}`},
		{first, Values{RetentionMs: "7000"}, `{"dedupWindowSeconds":900,"retentionEnabled":true,"retentionSeconds":7}`},
		{first, Values{}, `{"dedupWindowSeconds":900,"retentionEnabled":null,"retentionSeconds":null}`},
		{first, Values{RetentionMs: "-1"}, `{"dedupWindowSeconds":900,"retentionEnabled":false,"retentionSeconds":null}`},
		{Options{"leaseTime": json.RawMessage("7")}, Values{}, `{"dedupWindowSeconds":0,"leaseTime":7}`},
	} {
		got, err := json.Marshal(test.before.Next(test.v).Sent(test.before))
		if err != nil || string(got) != test.want {
			t.Errorf("%v: %s, %v; want %s", test.v, got, err, test.want)
		}
	}
}

// Records of other writers: what they keep only among the options is a config
// too, and what nobody knows is passed over.
func TestDecode(t *testing.T) {
	for value, want := range map[string]string{
		`{"qid":"q","set":{"retentionEnabled":true,"retentionSeconds":60},"at":7,"partitions":null}`:                        `map[retention.ms:60000] 0`,
		`{"qid":"q","set":{"retentionEnabled":false,"retentionSeconds":60},"partitions":12}`:                                `map[] 12`,
		`{"qid":null,"set":{},"partitions":-3,"kafka":{"segment.ms":"5","x":"1","segment.bytes":3,"cleanup.policy":"bad"}}`: `map[segment.ms:5] 0`,
		`{"set":null,"kafka":[1]}`: `map[] 0`,
		`{"set":{"retentionEnabled":true,"retentionSeconds":"x"},"kafka":{"retention.ms":"5000"}}`:                                    `map[retention.ms:5000] 0`,
		`{"set":{"retentionEnabled":true,"retentionSeconds":9223372036854775807},"kafka":{"retention.ms":"-1"}}`:                      `map[retention.ms:-1] 0`,
		`{"set":{"retentionEnabled":false},"kafka":{"cleanup.policy":"compact","retention.ms":"5000"},"partitions":2,"pending":true}`: `map[cleanup.policy:compact retention.ms:5000] 2`,
	} {
		r, ok := Decode([]byte(value))
		if got := show(r); !ok || got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
		again, ok := Decode(r.Encode())
		if !ok || show(again) != show(r) || again.Pending != r.Pending || (again.Set == nil) != (r.Set == nil) {
			t.Errorf("%s: encoded %s", value, r.Encode())
		}
	}
	for _, value := range []string{``, `null x`, `[]`, `7`, `{"qid":7}`, `{"set":[]}`, `{"partitions":"3"}`} {
		if r, ok := Decode([]byte(value)); ok {
			t.Errorf("%s: %+v", value, r)
		}
	}
}

func show(r Record) string {
	b, _ := json.Marshal(r.Kafka)
	text := strings.NewReplacer(`{`, "map[", `}`, "]", `"`, "", ",", " ").Replace(string(b))
	return text + " " + string(number(r.Partitions))
}

// FuzzDecode: whatever lies under a record's key, it is refused or is a record
// that encodes, and decodes to itself.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"qid":"q","set":{"dedupWindowSeconds":900,"retentionEnabled":true,"retentionSeconds":60},"at":7,"partitions":3,"kafka":{"cleanup.policy":"compact"}}`,
		`{"qid":null,"set":{},"pending":true}`, `null`, `{}`, `{"kafka":{"retention.ms":"999"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		r, ok := Decode(value)
		if !ok {
			return
		}
		again, ok := Decode(r.Encode())
		if !ok || !again.Kafka.Equal(r.Kafka) || again.Partitions != r.Partitions {
			t.Errorf("%s: %+v, then %+v", value, r, again)
		}
		for name := range r.Kafka {
			if _, known := keyOf(name); !known {
				t.Errorf("%s: config %q", value, name)
			}
		}
	})
}
