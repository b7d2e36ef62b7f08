package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/topicconf"
)

// configCase is one config key on the wire: what is taken and reads back as, and
// what is refused.
type configCase struct {
	key     string
	taken   []string // "given" or "given => described"
	refused []string
	list    bool
}

const adminBase = "cleanup.policy=delete min.insync.replicas=1 retention.ms=-1"

func configCases() []configCase {
	return []configCase{
		{
			key:     "retention.ms",
			taken:   []string{"1000", "1999 => 1000", "86400000", "86399999 => 86399000", " 5000 => 5000", "9223372036854775807 => 9223372036854775000"},
			refused: []string{"0", "1", "999", "-2", "-1000", "", "x", "1e9", "5000.0", "9223372036854775808", "-9223372036854775808"},
		},
		{
			key: "cleanup.policy", list: true,
			taken: []string{
				"delete", "compact", "compact,delete", "delete,compact", "Compact => compact", " DELETE , compact => delete,compact",
				"compact,compact => compact", "delete,compact,delete => delete,compact",
			},
			refused: []string{"", " ", ",", "delete,", "compacted", "none", "delete;compact", "delete,compact,other"},
		},
		{key: "min.insync.replicas", taken: []string{"1", " 1 => 1"}, refused: []string{"0", "-1", "2", "3", "", "x", "2147483648"}},
		{key: "message.timestamp.type", taken: []string{"CreateTime"}, refused: []string{"LogAppendTime", "createtime", "", " CreateTime"}},
		{key: "segment.bytes", taken: []string{"14", "1073741824", "2147483647"}, refused: []string{"13", "0", "-1", "", "x", "2147483648"}},
		{key: "segment.ms", taken: []string{"1", "9223372036854775807"}, refused: []string{"0", "-1", "", "x", "9223372036854775808"}},
		{key: "retention.bytes", taken: []string{"-1", "0", "1", "-9223372036854775808", "9223372036854775807"}, refused: []string{"", "x", "1.5"}},
		{key: "max.message.bytes", taken: []string{"0", "1048588"}, refused: []string{"-1", "", "x", "2147483648"}},
		{key: "min.compaction.lag.ms", taken: []string{"0", "1"}, refused: []string{"-1", "", "x"}},
		{key: "max.compaction.lag.ms", taken: []string{"1", "9223372036854775807"}, refused: []string{"0", "-1", "", "x"}},
		{key: "delete.retention.ms", taken: []string{"0", "86400000"}, refused: []string{"-1", "", "x"}},
		{key: "min.cleanable.dirty.ratio", taken: []string{"0", "1", "0.5", ".25 => 0.25"}, refused: []string{"-0.1", "1.1", "NaN", "Inf", "", "x"}},
	}
}

// shown is how a topic is described that sets one key.
func shown(key, value string) string {
	var out []string
	for _, k := range topicconf.Keys() {
		switch {
		case k.Name == key && (key != "retention.ms" || value != "-1"):
			out = append(out, key+"="+value+"*")
		case k.Default != "":
			out = append(out, k.Name+"="+k.Default)
		}
	}
	return strings.Join(out, " ")
}

// Every config key, by every way of setting it, against what it is described as.
func TestAdminEveryConfig(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	cases := configCases()
	if len(cases) != len(topicconf.Keys()) {
		t.Fatalf("%d cases for %d keys", len(cases), len(topicconf.Keys()))
	}
	adminMade(t, w, "t", 2)
	adminWants(t, "at first", adminDescribe(w, "t"), adminBase)
	for n, c := range cases {
		for i, text := range c.taken {
			given, want, rounded := strings.Cut(text, " => ")
			if !rounded {
				want = given
			}
			set := c.key + "=" + given
			created := fmt.Sprintf("t-%d-%d", n, i)
			adminMade(t, w, created, 1, set)
			adminWants(t, "created with "+set, adminDescribe(w, created), shown(c.key, want))

			if r := adminAlter(w, "t", false, set); r.ErrorCode != 0 {
				t.Errorf("alter to %q: %d %s", set, r.ErrorCode, adminText(r.ErrorMessage))
			}
			adminWants(t, "altered to "+set, adminDescribe(w, "t"), shown(c.key, want))
			adminWants(t, "one key", adminDescribe(w, "t", c.key, "no.such.key"), only(shown(c.key, want), c.key))

			for _, step := range []struct{ op, want string }{
				{"delete " + c.key + "=ignored", adminBase},
				{"set " + set, shown(c.key, want)},
				{"set " + c.key, adminBase}, // a null value
				{"set " + set, shown(c.key, want)},
			} {
				if r := adminChange(w, "t", step.op); r.ErrorCode != 0 {
					t.Errorf("%q: %d %s", step.op, r.ErrorCode, adminText(r.ErrorMessage))
				}
				adminWants(t, step.op, adminDescribe(w, "t"), step.want)
			}
			if r := adminAlter(w, "t", false, c.key); r.ErrorCode != 0 {
				t.Errorf("alter of %s to null: %d", c.key, r.ErrorCode)
			}
			adminWants(t, "altered to null", adminDescribe(w, "t"), adminBase)
		}
		adminChange(w, "t", "set "+c.key+"="+strings.Split(c.taken[0], " => ")[0])
		before := adminDescribe(w, "t")
		for _, value := range c.refused {
			set := c.key + "=" + value
			answers := map[string]struct {
				code    int16
				message *string
			}{}
			r := adminCreate(w, 6, adminTopic("refused", 1, set)).Topics[0]
			answers["create"] = struct {
				code    int16
				message *string
			}{r.ErrorCode, r.ErrorMessage}
			a := adminAlter(w, "t", false, set)
			answers["alter"] = struct {
				code    int16
				message *string
			}{a.ErrorCode, a.ErrorMessage}
			i := adminChange(w, "t", "set segment.ms=77", "set "+set)
			answers["set"] = struct {
				code    int16
				message *string
			}{i.ErrorCode, i.ErrorMessage}
			for how, got := range answers {
				if got.code != 40 || !strings.Contains(adminText(got.message), c.key) {
					t.Errorf("%s of %q: %d %s, want 40 and a sentence", how, set, got.code, adminText(got.message))
				}
			}
		}
		for _, op := range []string{"append", "subtract"} {
			value := strings.Split(c.taken[0], " => ")[0]
			r := adminChange(w, "t", op+" "+c.key+"="+value)
			want := int16(40)
			if c.list && op == "append" {
				want = 0 // it is there
			}
			if r.ErrorCode != want {
				t.Errorf("%s to %s: code %d %s, want %d", op, c.key, r.ErrorCode, adminText(r.ErrorMessage), want)
			}
		}
		adminWants(t, "after what was refused", adminDescribe(w, "t"), before)
		adminAlter(w, "t", false)
	}
	if got := adminWidth(w, "refused"); got != -1 {
		t.Errorf("a refused topic has a width of %d", got)
	}
}

// only is the row of one key.
func only(rows, key string) string {
	for _, row := range strings.Split(rows, " ") {
		if strings.HasPrefix(row, key+"=") {
			return row
		}
	}
	return ""
}

// Lists, in the order of the request; a refused operation refuses all.
func TestAdminIncrementalOperations(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	adminMade(t, w, "t", 1)
	for _, step := range []struct {
		ops  []string
		code int16
		want string // of cleanup.policy
	}{
		{[]string{"append cleanup.policy=compact"}, 0, "cleanup.policy=delete,compact*"},
		{[]string{"append cleanup.policy=delete"}, 0, "cleanup.policy=delete,compact*"},
		{[]string{"subtract cleanup.policy=delete"}, 0, "cleanup.policy=compact*"},
		{[]string{"subtract cleanup.policy=compact"}, 40, "cleanup.policy=compact*"},
		{[]string{"append cleanup.policy=other"}, 40, "cleanup.policy=compact*"},
		{[]string{"append cleanup.policy"}, 40, "cleanup.policy=compact*"},
		{[]string{"set cleanup.policy=delete", "append cleanup.policy=compact"}, 0, "cleanup.policy=delete,compact*"},
		{[]string{"delete cleanup.policy", "append cleanup.policy=compact", "subtract cleanup.policy=delete"}, 0, "cleanup.policy=compact*"},
		{[]string{"delete cleanup.policy"}, 0, "cleanup.policy=delete"},
		{[]string{"subtract cleanup.policy=delete"}, 40, "cleanup.policy=delete"},
		{[]string{"set cleanup.policy=compact", "delete no.such.key"}, 40, "cleanup.policy=delete"},
		{[]string{"set cleanup.policy=compact", "other segment.ms=1"}, 42, "cleanup.policy=delete"},
		{nil, 0, "cleanup.policy=delete"},
	} {
		r := adminChange(w, "t", step.ops...)
		if r.ErrorCode != step.code || (r.ErrorMessage == nil) != (step.code == 0) {
			t.Errorf("%v: %d %s, want %d", step.ops, r.ErrorCode, adminText(r.ErrorMessage), step.code)
		}
		adminWants(t, fmt.Sprint(step.ops), adminDescribe(w, "t", "cleanup.policy"), step.want)
	}
	long := adminChange(w, "t", "set "+strings.Repeat("k", 30_000)+"=1\x1b[31m")
	if text := adminText(long.ErrorMessage); long.ErrorCode != 40 || len(text) > 600 || !strings.Contains(text, "retention.ms") || strings.ContainsRune(text, 0x1b) {
		t.Errorf("an endless key: %d %.700q", long.ErrorCode, text)
	}
}

// What is altered is what the cell does: retention goes on and off, is kept
// aside without delete, and comes back with it.
func TestAdminConfigsReachTheCell(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	adminMade(t, w, "t", 1, "retention.ms=60000")
	for _, step := range []struct {
		ops  []string
		want string
	}{
		{nil, "true 60"},
		{[]string{"set retention.ms=90000"}, "true 90"},
		{[]string{"set cleanup.policy=compact"}, "false 0"},
		{[]string{"set segment.ms=5"}, "false 0"},
		{[]string{"set retention.ms=120000"}, "false 0"},
		{[]string{"append cleanup.policy=delete"}, "true 120"},
		{[]string{"set retention.ms=-1"}, "false 0"},
		{[]string{"set retention.ms=30000", "delete cleanup.policy"}, "true 30"},
		{[]string{"delete retention.ms"}, "false 0"},
	} {
		if len(step.ops) > 0 {
			if got := adminChange(w, "t", step.ops...); got.ErrorCode != 0 {
				t.Errorf("%v: %d %s", step.ops, got.ErrorCode, adminText(got.ErrorMessage))
			}
		}
		o := adminCellOptions(t, r, rig.Acme, "t")
		adminWants(t, fmt.Sprint(step.ops), fmt.Sprint(o.RetentionEnabled, o.RetentionSeconds), step.want)
		if o.DedupWindowSeconds != 900 {
			t.Errorf("%v: a deduplication window of %d s", step.ops, o.DedupWindowSeconds)
		}
	}
	// One line of an old tool turns retention off.
	adminChange(w, "t", "set retention.ms=30000")
	adminAlter(w, "t", false, "cleanup.policy=delete")
	if o := adminCellOptions(t, r, rig.Acme, "t"); o.RetentionEnabled || o.DedupWindowSeconds != 900 {
		t.Errorf("after a replacement: %+v", o)
	}
}

// Resources that are no topics, at every version.
func TestAdminConfigResources(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	adminMade(t, w, "t", 1)
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	describes := map[resource]int16{
		{2, "t"}: 0, {2, "none"}: 3, {2, ""}: 3, {2, "__x"}: 3, {2, "a b"}: 3,
		{4, ""}: 0, {4, "0"}: 0, {4, "1"}: 42, {4, "x"}: 42, {8, "0"}: 42, {0, "x"}: 42, {16, "x"}: 42, {32, "g"}: 42, {127, ""}: 42,
	}
	alters := map[resource]int16{
		{2, "t"}: 0, {2, "none"}: 3, {2, ""}: 3, {2, "__x"}: 3,
		{4, ""}: 40, {4, "0"}: 40, {4, "1"}: 42, {8, "0"}: 42, {0, "x"}: 42, {16, "x"}: 42, {32, "g"}: 42,
	}
	for version := wireRow(t, 32).Min; version <= wireRow(t, 32).Max; version++ {
		for res, want := range describes {
			req := kmsg.NewPtrDescribeConfigsRequest()
			req.Version, req.IncludeDocumentation = version, true
			req.Resources = []kmsg.DescribeConfigsRequestResource{
				{ResourceType: res.kind, ResourceName: res.name}, {ResourceType: res.kind, ResourceName: res.name, ConfigNames: []string{}},
			}
			resp := w.Ask(req).(*kmsg.DescribeConfigsResponse)
			if len(resp.Resources) != 1 || resp.Resources[0].ErrorCode != want || resp.Resources[0].ResourceName != res.name {
				t.Fatalf("describe v%d %v: %+v, want code %d", version, res, resp.Resources, want)
			}
			for _, c := range resp.Resources[0].Configs {
				if c.IsSensitive || len(c.ConfigSynonyms) != 0 || c.ReadOnly != (res.kind == 4) || c.Value == nil ||
					version >= 3 && (c.Documentation == nil || c.ConfigType == 0) || c.Source == 0 {
					t.Errorf("describe v%d %v: %+v", version, res, c)
				}
			}
			if want == 0 && len(resp.Resources[0].Configs) != map[kmsg.ConfigResourceType]int{2: 3, 4: 8}[res.kind] {
				t.Errorf("describe v%d %v: %d configs", version, res, len(resp.Resources[0].Configs))
			}
		}
	}
	for version := wireRow(t, 33).Min; version <= wireRow(t, 33).Max; version++ {
		for res, want := range alters {
			req := kmsg.NewPtrAlterConfigsRequest()
			req.Version, req.Resources = version, []kmsg.AlterConfigsRequestResource{{ResourceType: res.kind, ResourceName: res.name}}
			if got := w.Ask(req).(*kmsg.AlterConfigsResponse).Resources[0]; got.ErrorCode != want || got.ResourceName != res.name || got.ResourceType != res.kind {
				t.Errorf("alter v%d %v: %+v, want code %d", version, res, got, want)
			}
		}
	}
	for version := wireRow(t, 44).Min; version <= wireRow(t, 44).Max; version++ {
		for res, want := range alters {
			req := kmsg.NewPtrIncrementalAlterConfigsRequest()
			req.Version, req.Resources = version, []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: res.kind, ResourceName: res.name}}
			if got := w.Ask(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]; got.ErrorCode != want || got.ResourceName != res.name {
				t.Errorf("incremental alter v%d %v: %+v, want code %d", version, res, got, want)
			}
		}
	}
	// What stands twice is refused, all of it.
	req := adminChangeRequest("t", "set segment.ms=5")
	req.Resources = append(req.Resources, req.Resources[0])
	for _, got := range w.Ask(req).(*kmsg.IncrementalAlterConfigsResponse).Resources {
		if got.ErrorCode != 42 {
			t.Errorf("a topic twice: code %d, want 42", got.ErrorCode)
		}
	}
	if got := adminAlter(w, "t", false, "segment.ms=5", "segment.ms=6"); got.ErrorCode != 42 {
		t.Errorf("a key twice: code %d, want 42", got.ErrorCode)
	}
	if got := adminAlter(w, "t", true, "segment.ms=5"); got.ErrorCode != 0 {
		t.Errorf("validate only: code %d", got.ErrorCode)
	}
	adminWants(t, "nothing was changed", adminDescribe(w, "t"), adminBase)
}
