package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/audit"
	"github.com/queen-mq/queen-edge/edge/config"
)

// audited has the gateway write an audit log to path.
func audited(path string, change func(*config.Config)) func(*rig.Options) {
	return func(o *rig.Options) {
		o.Config = func(cfg *config.Config) {
			cfg.AuditLog = path
			if change != nil {
				change(cfg)
			}
		}
	}
}

// auditLines are the lines of the log. Every one must be of the tenant, the label
// and the lane, if it has any, and of an address and a time.
func auditLines(t *testing.T, path, tenant, label, lane string) []audit.Event {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []audit.Event
	for line := range strings.Lines(string(text)) {
		var e audit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil || time.Since(at) > time.Hour || !strings.HasPrefix(e.Address, "127.0.0.1:") {
			t.Errorf("%s", line)
		}
		if e.Label != label || e.Lane != lane || e.Tenant != tenant && e.What != audit.LoginRefused {
			t.Errorf("not of %s, %s: %s", tenant, label, line)
		}
		e.Time, e.Address, e.Label, e.Lane, e.Tenant = "", "", "", "", ""
		out = append(out, e)
	}
	return out
}

// What a real client's administration does is written down, each thing once and
// by its name; what was refused or only tried out is not.
func TestAuditOfDeeds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	r := rig.Start(t, audited(path, nil))
	ctx := rig.Context(t)
	c := r.Kafka(t, rig.Acme)
	adm := kadm.NewClient(c)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := adm.CreateTopic(ctx, 3, 1, nil, "orders")
	must(err)
	if _, err = adm.CreateTopic(ctx, 3, 1, nil, "orders"); err == nil {
		t.Error("made twice")
	}
	_, err = adm.ValidateCreateTopics(ctx, 3, 1, nil, "tried")
	must(err)
	value := "3600000"
	_, err = adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}, "orders")
	must(err)
	_, err = adm.AlterTopicConfigsState(ctx, []kadm.AlterConfig{{Name: "max.message.bytes", Value: &value}}, "orders")
	must(err)
	_, err = adm.CreatePartitions(ctx, 2, "orders") // two more
	must(err)
	must(c.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("secret-record")}, &kgo.Record{Topic: "by-naming", Value: []byte("v")}).FirstErr())
	must(c.ProduceSync(ctx, &kgo.Record{Topic: "by-naming", Value: []byte("v")}).FirstErr())
	var offsets kadm.Offsets
	for p := range int32(3) {
		offsets.AddOffset("orders", p, 1, -1)
	}
	must(adm.CommitAllOffsets(ctx, "idlers", offsets))
	gone := kadm.TopicsSet{}
	gone.Add("orders", 0, 1)
	_, err = adm.DeleteOffsets(ctx, "idlers", gone)
	must(err)
	_, err = adm.DeleteGroups(ctx, "idlers", "nobody-knows")
	must(err)
	_, err = adm.DeleteTopics(ctx, "orders", "never-there")
	must(err)
	c.Close()
	r.StopGateway(t)

	clusters := map[string]string{}
	for _, cl := range r.Cell.Control().Clusters() {
		clusters[cl.Slug] = cl.ID.String()
	}
	got := auditLines(t, path, clusters["acme"], rig.Acme, "root")
	logins := len(got)
	got = slices.DeleteFunc(got, func(e audit.Event) bool { return e.What == audit.LoginOK })
	if logins -= len(got); logins < 1 {
		t.Error("no login was written down")
	}
	i := slices.IndexFunc(got, func(e audit.Event) bool { return e.Topic == "by-naming" })
	if i < 0 || got[i].API != "Metadata" && got[i].API != "Produce" {
		t.Errorf("a topic made by naming it: %+v", got)
	} else {
		got[i].API = ""
	}
	want := []audit.Event{
		{What: audit.TopicCreated, API: "CreateTopics", Topic: "orders"},
		{What: audit.ConfigAltered, API: "IncrementalAlterConfigs", Topic: "orders", Configs: []string{"retention.ms"}},
		{What: audit.ConfigAltered, API: "AlterConfigs", Topic: "orders", Configs: []string{"max.message.bytes"}},
		{What: audit.PartitionsCreated, API: "CreatePartitions", Topic: "orders", Partitions: 5},
		{What: audit.TopicCreated, Topic: "by-naming"},
		{What: audit.OffsetsDeleted, API: "OffsetDelete", Group: "idlers", Topic: "orders", Partitions: 2},
		{What: audit.GroupDeleted, API: "DeleteGroups", Group: "idlers"},
		{What: audit.TopicDeleted, API: "DeleteTopics", Topic: "orders"},
	}
	if !slices.EqualFunc(got, want, func(a, b audit.Event) bool { return asJSON(t, a) == asJSON(t, b) }) {
		t.Errorf("got\n%s\nwant\n%s", asJSON(t, got), asJSON(t, want))
	}
	wantNoSecrets(t, r, path)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantNoSecrets(t *testing.T, r *rig.Rig, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{rig.Acme, rig.Acme2, rig.NoRead, rig.Globex} {
		if strings.Contains(string(text), r.Key(key)) {
			t.Errorf("the log shows key %s", key)
		}
	}
	if strings.Contains(string(text), "secret") {
		t.Error("the log shows a record, or a password")
	}
}

// Logins are written down however they end, a label that is a key without it, and
// a revoked token once for each connection that it cost.
func TestAuditOfLogins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	r := rig.Start(t, audited(path, func(cfg *config.Config) {
		cfg.Reverify, cfg.ForwardSNIHost = time.Second, true
	}))
	for _, password := range []string{"secret-that-is-none", r.Key(rig.NoRead)} {
		c, err := kgo.NewClient(kgo.SeedBrokers(r.Addr), kgo.DialTLSConfig(r.TLS()),
			kgo.SASL(plain.Auth{User: r.Key(rig.Acme), Pass: password}.AsMechanism()))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Ping(rig.Context(t)); err == nil {
			t.Errorf("logged in with %s", password)
		}
		c.Close()
	}
	var open []*rig.Wire
	for range 2 {
		w := r.Dial(t)
		if resp := w.Authenticate(r.Key(rig.Acme2), r.Key(rig.Acme2)); resp.ErrorCode != 0 {
			t.Fatal(resp.ErrorCode)
		}
		open = append(open, w)
	}
	r.Revoke(t, rig.Acme2)
	for _, w := range open {
		w.WantClosed()
	}
	r.StopGateway(t)

	var acme string
	for _, cl := range r.Cell.Control().Clusters() {
		if cl.Slug == "acme" {
			acme = cl.ID.String()
		}
	}
	counts := map[string]int{}
	for _, e := range auditLines(t, path, acme, "<redacted>", rig.Host) {
		if e.What != audit.Revoked && e.Mechanism != "PLAIN" {
			t.Errorf("%+v", e)
		}
		counts[e.What+" "+e.Reason]++
	}
	want := map[string]int{"login_refused unknown": 1, "login_refused no_scope": 1, "login_ok ": 2, "revoked ": 2}
	if !maps.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
	wantNoSecrets(t, r, path)
}

// The outcome that the client was not told is written down as not known.
func TestAuditOfAnUnknownOutcome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	var p *inject.Proxy
	r := rig.Start(t, audited(path, nil), rig.WithFaults(t, &p))
	w := r.Login(t, rig.Acme)
	wireMustStore(t, w, "doubtful", 0, wireBatch{values: []string{"x"}})
	lost := rig.LoseAnswer(t, p, "/api/v1/resources/queues/")
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.Version, del.TopicNames = 3, []string{"doubtful"}
	if resp := w.Ask(del).(*kmsg.DeleteTopicsResponse); resp.Topics[0].ErrorCode != 7 {
		t.Fatalf("code %d, want 7", resp.Topics[0].ErrorCode)
	}
	lost()
	r.StopGateway(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"reason":"REQUEST_TIMED_OUT","api":"DeleteTopics","topic":"doubtful","unknown":true}`; !strings.Contains(string(text), want) {
		t.Errorf("no %s in\n%s", want, text)
	}
}

// Whatever stands in a field that a client fills, a line is a line: no token
// that was put into the wrong field, nothing that moves a terminal, no line
// without an end.
func TestAuditOfStrangeNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	core, logs := observer.New(zapcore.DebugLevel)
	r := rig.Start(t, audited(path, nil), func(o *rig.Options) { o.Log = zap.New(core) })
	key := r.Key(rig.Acme)
	long := strings.Repeat("ü", 16<<10)
	for _, user := range []string{"a\nb\x1b[31m\u009b2J\u202e", long, key, key + "\n", "Bearer " + key, "\xff\xfe"} {
		w := r.Dial(t)
		w.Authenticate(user, "qk_live_wrong")
		w.WantClosed()
		w = r.Dial(t)
		if resp := w.Authenticate(user, key); resp.ErrorCode != 0 {
			t.Fatalf("%.20q: code %d", user, resp.ErrorCode)
		}
		_ = w.Close()
	}
	w := r.Login(t, rig.Acme)
	groups := []string{key, "a\u009b2J\u202e\nb"}
	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Version, del.Groups = 2, groups
	for _, group := range groups {
		mustCommit(t, w, group, at{topic: "orders", offset: 1})
	}
	for _, g := range w.Ask(del).(*kmsg.DeleteGroupsResponse).Groups {
		if g.ErrorCode != 0 {
			t.Errorf("%.20q: code %d", g.Group, g.ErrorCode)
		}
	}
	r.StopGateway(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for line := range strings.Lines(string(text)) {
		var e audit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || len(line) > 1000 {
			t.Errorf("%d bytes, %v: %.200q", len(line), err, line)
		}
		if e.What == audit.GroupDeleted {
			deleted = append(deleted, e.Group)
		}
	}
	if want := []string{"<redacted>", "a?2J?\nb"}; !slices.Equal(deleted, want) {
		t.Errorf("deleted are %q, want %q", deleted, want)
	}
	all := string(text)
	for _, entry := range logs.All() {
		all += entry.Message + asJSON(t, entry.ContextMap())
	}
	for _, bad := range []string{key, "qk_live_wrong", "\x1b", "\u009b", "\u202e"} {
		if strings.Contains(all, bad) {
			t.Errorf("%q is written down", bad)
		}
	}
}
