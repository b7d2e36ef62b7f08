package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// Two tenants use one topic name; each sees its own topic.
func TestTenantsShareNames(t *testing.T) {
	r := rig.Start(t)
	ctx := rig.Context(t)
	own := map[string][]string{rig.Acme: {"a0", "a1", "a2"}, rig.Globex: {"g0", "g1"}}
	for key, values := range own {
		p := r.Kafka(t, key, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for _, v := range values {
			if err := p.ProduceSync(ctx, &kgo.Record{Topic: "shared", Value: []byte(v)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.ProduceSync(ctx, &kgo.Record{Topic: "of-" + key, Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for key, tenant := range map[string]string{rig.Acme: rig.Acme, rig.Acme2: rig.Acme, rig.Consume: rig.Acme, rig.Globex: rig.Globex} {
		topics, err := kadm.NewClient(r.Kafka(t, key)).ListTopics(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"of-" + tenant, "shared"}; !slices.Equal(topics.Names(), want) {
			t.Errorf("key %s lists %v, want %v", key, topics.Names(), want)
		}
		var got []string
		for _, rec := range readAll(t, r, key, "shared")[0] {
			got = append(got, string(rec.Value))
		}
		if !slices.Equal(got, own[tenant]) {
			t.Errorf("key %s reads %v, want %v", key, got, own[tenant])
		}
	}
	// What the other tenant has is not there.
	w := r.Login(t, rig.Globex)
	resp := w.Ask(want(fetchReq(0, 1<<20), "of-"+rig.Acme, 0, 0)).(*kmsg.FetchResponse)
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("Fetch of another tenant's topic: code %d, want 3", code)
	}
}

// A tenant logs in with more tokens than a gateway remembers. What it remembers of
// another tenant stays: that one's next login asks the cell for nothing.
func TestTokensOfOneTenantPushNoOtherOut(t *testing.T) {
	var p *inject.Proxy
	r := rig.Start(t, rig.WithFaults(t, &p), func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Limits.IdentityEntries, c.AuthCache = 4, time.Minute }
	})
	r.Login(t, rig.Globex)
	for range 8 {
		text, _, err := r.Cell.Control().CreateKey(control.NewKey{Cluster: rig.Acme, Scopes: control.AllScopes()})
		if err != nil {
			t.Fatal(err)
		}
		if resp := r.Dial(t).Authenticate("acme", text); resp.ErrorCode != 0 {
			t.Fatalf("login: code %d", resp.ErrorCode)
		}
	}
	asked := func() int { return p.Calls("/auth/me") + p.Calls("/api/v1/resources/queues") }
	before := asked()
	r.Login(t, rig.Globex)
	if n := asked() - before; before == 0 || n != 0 {
		t.Errorf("the cell was asked %d times before and %d times for a login that is remembered", before, n)
	}
}

// A key does what its scopes say: the rest is refused with 29, for good.
func TestScopes(t *testing.T) {
	r := rig.Start(t)
	ctx := rig.Context(t)
	makeTopic(t, r, rig.Acme, "t")

	p := r.Kafka(t, rig.Produce)
	if err := p.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Errorf("a produce key cannot produce: %v", err)
	}
	c := r.Kafka(t, rig.Consume, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if got := c.PollFetches(ctx); got.Err() != nil || got.NumRecords() != 1 {
		t.Errorf("a consume key reads %d records (%v)", got.NumRecords(), got.Err())
	}

	err := r.Kafka(t, rig.Consume).ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr()
	if !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("Produce with a consume key: %v, want 29", err)
	}
	reader := r.Kafka(t, rig.Produce, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(0)}}))
	if err := reader.PollFetches(ctx).Err(); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("Fetch with a produce key: %v, want 29", err)
	}
	// Neither may create a topic.
	for _, key := range []string{rig.Produce, rig.Consume} {
		err := r.Kafka(t, key).ProduceSync(ctx, &kgo.Record{Topic: "new", Value: []byte("v")}).FirstErr()
		if !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Errorf("creating a topic with key %s: %v, want 29", key, err)
		}
	}
	// What was refused is not there.
	if n := len(readAll(t, r, rig.Consume, "t")); n != 1 {
		t.Errorf("%d partitions hold records, want 1", n)
	}
}

// A login that is refused says why, where the client looks.
func TestLoginRefused(t *testing.T) {
	r := rig.Start(t)
	for _, c := range []struct {
		name, token string
		says, not   string
	}{
		{"without read", r.Key(rig.NoRead), "SCOPE", "not a valid token"},
		{"unknown token", "qk_live_nobody_knows_this_one", "not a valid token", "SCOPE"},
		{"altered token", r.Key(rig.Acme) + "x", "not a valid token", "SCOPE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := kgo.NewClient(
				kgo.SeedBrokers(r.Addr), kgo.DialTLSConfig(r.TLS()),
				kgo.SASL(plain.Auth{User: "u", Pass: c.token}.AsMechanism()),
			)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			err = client.Ping(rig.Context(t))
			if !errors.Is(err, kerr.SaslAuthenticationFailed) {
				t.Fatalf("login: %v, want 58", err)
			}
			if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.not) {
				t.Errorf("the client reads %q", err)
			}
			if strings.Contains(err.Error(), c.token) {
				t.Error("the refusal repeats the token")
			}
		})
	}
}
