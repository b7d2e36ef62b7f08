package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// idCell knows clusters by bearer; the bearer "nobody" is of none.
type idCell struct {
	queues []proxyclient.Queue
	err    error
}

func (idCell) ListQueuesAs(context.Context, tenancy.Claim) (int, error) { return 0, nil }

func (idCell) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	if c.Bearer().Reveal() == "nobody" {
		return tenancy.Identity{}, nil
	}
	return tenancy.Identity{ClusterID: c.Bearer().Reveal()}, nil
}

func (c *idCell) ListQueues(context.Context, tenancy.Scope) ([]proxyclient.Queue, error) {
	return c.queues, c.err
}

func (*idCell) Configure(_ context.Context, _ tenancy.Scope, queue string, _ map[string]any) (string, error) {
	return "made-" + queue, nil
}

func (*idCell) DeleteQueue(context.Context, tenancy.Scope, string) (bool, error) { return false, nil }

func (*idCell) KV(context.Context, tenancy.Scope, []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	return []proxyclient.KVResult{{}}, nil
}

// scopeOf proves a bearer in a process of its own.
func scopeOf(t *testing.T, cluster string) tenancy.Scope {
	t.Helper()
	v := tenancy.NewVerifier[int](idCell{}, tenancy.VerifierConfig{})
	p, err := v.Verify(context.Background(), tenancy.NewClaim(tenancy.NewSecret(cluster), ""))
	if err != nil {
		t.Fatal(err)
	}
	return p.Scope
}

// An id is what everybody can reckon: the first 128 bits of SHA-256 over both
// ids, each behind its length in 8 bytes. A change of it would make every topic
// a new one to every client.
func TestTopicIDIsTheSumOfBothIDs(t *testing.T) {
	sum := sha256.Sum256([]byte("\x00\x00\x00\x00\x00\x00\x00\x04acme\x00\x00\x00\x00\x00\x00\x00\x027b"))
	got := topicID(scopeOf(t, "acme"), "7b")
	if got != TopicID(sum[:16]) || hex.EncodeToString(got[:]) != "197154e1cef165f64fd8a4bdb7fccf37" {
		t.Errorf("id %x, want %x", got, sum[:16])
	}
}

// No two pairs share an id, whatever their bytes would make when written one
// behind the other, and every process finds the same.
func TestTopicIDsAreApart(t *testing.T) {
	seen := map[TopicID]string{}
	for _, cluster := range []string{"a", "ab", "abc", "b", "acme", "globex"} {
		for _, queue := range []string{"a", "b", "bc", "c", "abc", "7b1f", "7b1f-2", "\x00", "a\x00b"} {
			id := topicID(scopeOf(t, cluster), queue)
			if other, dup := seen[id]; dup || id.reserved() {
				t.Errorf("%q of %q has the id of %s", queue, cluster, other)
			}
			seen[id] = fmt.Sprintf("%q of %q", queue, cluster)
			if again := topicID(scopeOf(t, cluster), queue); again != id {
				t.Errorf("%q of %q has two ids", queue, cluster)
			}
		}
	}
}

// A queue without an id, and every queue of a tenant without one, has none.
func TestTopicIDNone(t *testing.T) {
	if id := topicID(scopeOf(t, "acme"), ""); !id.IsZero() {
		t.Errorf("a queue without an id has %x", id)
	}
	if id := topicID(scopeOf(t, "nobody"), "7b"); !id.IsZero() {
		t.Errorf("a tenant without an id has %x", id)
	}
}

// Ids that Kafka keeps for itself are skipped.
func TestTopicIDReserved(t *testing.T) {
	for _, id := range []TopicID{{}, {15: 1}} {
		var sum [sha256.Size]byte
		copy(sum[:], id[:])
		next := sha256.Sum256(sum[:])
		if got := firstFree(sum); got != TopicID(next[:16]) {
			t.Errorf("%x: %x", id, got)
		}
	}
	if got := firstFree([sha256.Size]byte{15: 2}); got != (TopicID{15: 2}) {
		t.Errorf("%x", got)
	}
}

// Look-ups by id stay inside a listing; what has no id is not found by none.
func TestFindID(t *testing.T) {
	cell := &idCell{}
	for i := range 300 {
		cell.queues = append(cell.queues, proxyclient.Queue{Name: fmt.Sprint("t", i), ID: fmt.Sprint("q", i*7919%300)})
	}
	cell.queues = append(cell.queues, proxyclient.Queue{Name: "bare"}, proxyclient.Queue{Name: "__x", ID: "hidden"})
	c := New(cell, Config{DefaultPartitions: 1, MaxPartitions: 9, MaxTenants: 9})
	acme, globex := scopeOf(t, "acme"), scopeOf(t, "globex")
	list, err := c.Get(context.Background(), acme)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range list.Topics() {
		got, ok := list.FindID(topic.ID)
		if want := topic.Name != "bare"; ok != want || want && got != topic {
			t.Errorf("%s: found %v, %+v", topic.Name, ok, got)
		}
		if _, ok := list.FindID(topicID(globex, topic.QueueID)); ok {
			t.Errorf("%s is found by another tenant's id", topic.Name)
		}
	}
	if _, ok := list.FindID(topicID(acme, "hidden")); ok {
		t.Error("a hidden topic is found by its id")
	}
}

func TestResolveIDs(t *testing.T) {
	cell := &idCell{queues: []proxyclient.Queue{{Name: "a", ID: "qa"}, {Name: "b", ID: "qb"}}}
	c := New(cell, Config{DefaultPartitions: 1, MaxPartitions: 9, MaxTenants: 9, MaxCreates: 9})
	s := scopeOf(t, "acme")
	a, b, none := topicID(s, "qa"), topicID(s, "qb"), topicID(s, "qc")
	got := c.ResolveIDs(context.Background(), s, []TopicID{b, none, {}, a})
	for i, want := range []struct {
		name  string
		state State
	}{{"b", Found}, {"", Missing}, {"", Missing}, {"a", Found}} {
		if r := got[i]; r.Name != want.name || r.State != want.state || !r.ByID || r.Topic.Name != want.name {
			t.Errorf("%d: %+v, want %+v", i, r, want)
		}
	}
	// A topic made in between has the id that later listings give it.
	made := c.Resolve(context.Background(), s, []string{"new"}, true)[0]
	if made.Topic.ID != topicID(s, "made-new") {
		t.Errorf("a new topic has id %x", made.Topic.ID)
	}
	cell.err = errors.New("down")
	c.Invalidate(s)
	for _, r := range c.ResolveIDs(context.Background(), s, []TopicID{a, none}) {
		if r.State != Failed || r.Err == nil || !r.ByID {
			t.Errorf("%+v, want failed", r)
		}
	}
}
