package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// Offsets are committed and read on a plan that sells no key-value store.
func TestCommitWithoutKV(t *testing.T) {
	r := rig.Start(t)
	if err := r.Cell.Control().SetPlan("acme", control.PlanPro); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(rig.Context(t), http.MethodPost, r.CellURL+"/api/v1/kv",
		strings.NewReader(`{"operations":[{"op":"get","ns":"mine","key":"k"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.Key(rig.Acme))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "feature_gated") {
		t.Fatalf("a key of one's own: %d %s, %v", resp.StatusCode, text, err)
	}
	w := r.Login(t, rig.Acme)
	mustCommit(t, w, "g", at{topic: "orders", offset: 7})
	if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, []string{"orders/0=7"}) {
		t.Errorf("read %v", got)
	}
	if got := groupsListed(t, w); !slices.Equal(got, []string{`g "" Empty`}) {
		t.Errorf("listed are %v", got)
	}
}

// A tenant whose storage is full produces no more, and commits and reads offsets
// as before; produce recovers with the room.
func TestCommitWithoutStorage(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	makeTopic(t, r, rig.Acme, "orders")
	record := wireBatch{values: []string{strings.Repeat("x", 100)}}
	wireMustStore(t, w, "orders", 0, record)
	limit := func(value string) {
		t.Helper()
		edit := map[string]json.RawMessage{"max_retained_bytes": nil}
		if value != "" {
			edit["max_retained_bytes"] = json.RawMessage(value)
		}
		if err := r.Cell.Control().EditOverrides("acme", edit); err != nil {
			t.Fatal(err)
		}
	}
	limit("64")
	rig.Eventually(t, "the refusal of a produce", func() bool { return wireStore(w, "orders", 0, record).ErrorCode != 0 })
	for i := range 3 {
		mustCommit(t, w, "g", at{topic: "orders", offset: int64(i)})
	}
	if got := committed(t, w, offsetRequest(7, "g")); !slices.Equal(got, []string{"orders/0=2"}) {
		t.Errorf("read %v", got)
	}
	if code := wireStore(w, "orders", 0, record).ErrorCode; code == 0 {
		t.Error("a produce is stored where there is no room")
	}
	limit("")
	rig.Eventually(t, "a produce", func() bool { return wireStore(w, "orders", 0, record).ErrorCode == 0 })
}
