package control

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustCluster(t *testing.T, s *Store, n NewCluster) Cluster {
	t.Helper()
	c, err := s.CreateCluster(n)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustKey(t *testing.T, s *Store, n NewKey) (string, Key) {
	t.Helper()
	text, key, err := s.CreateKey(n)
	if err != nil {
		t.Fatal(err)
	}
	return text, key
}

func TestKeysSurviveReopening(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	c := mustCluster(t, s, NewCluster{Slug: "acme"})
	text, key := mustKey(t, s, NewKey{Cluster: "acme", Scopes: Scopes{Read: true}})
	if !regexp.MustCompile(`^qk_live_[A-Za-z0-9_-]{43}$`).MatchString(text) {
		t.Error("the key's text has another form than qk_<env>_<43 base64url>")
	}

	for name, store := range map[string]*Store{"same": s, "reopened": open(t, dir)} {
		grant, ok := store.Authenticate(text)
		if !ok {
			t.Fatalf("%s: the key is unknown", name)
		}
		if grant.Cluster.ID != c.ID.String() || grant.KeyID != key.ID.String() || grant.Scopes != (Scopes{Read: true}) {
			t.Errorf("%s: grant %+v", name, grant)
		}
		for _, wrong := range []string{"", "qk_live_", text + "x", strings.ToUpper(text), text[:len(text)-1]} {
			if _, ok := store.Authenticate(wrong); ok {
				t.Errorf("%s: a text that is no key was accepted", name)
			}
		}
	}
}

func TestFourIdentifiersDiffer(t *testing.T) {
	s := open(t, t.TempDir())
	c := mustCluster(t, s, NewCluster{Slug: "acme"})
	sibling := mustCluster(t, s, NewCluster{Slug: "acme-two", TenantID: c.TenantID})
	_, key := mustKey(t, s, NewKey{Cluster: "acme"})
	seen := map[UUID]bool{}
	for _, id := range []UUID{c.ID, c.TenantID, c.BrokerTenant, key.ID, sibling.ID, sibling.BrokerTenant} {
		if id.IsZero() || seen[id] {
			t.Errorf("identifier %s is zero or used twice", id)
		}
		seen[id] = true
	}
	if sibling.TenantID != c.TenantID {
		t.Error("a second cluster of one paying tenant got another tenant")
	}
}

func TestRevokedAndExpiredKeysAreUnknown(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 10, 2, 8, 0, 0, 0, time.UTC)
	s, err := Open(dir, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	mustCluster(t, s, NewCluster{Slug: "acme"})
	revoked, key := mustKey(t, s, NewKey{Cluster: "acme"})
	expiring, _ := mustKey(t, s, NewKey{Cluster: "acme", ExpiresAt: now.Add(time.Hour)})
	for _, text := range []string{revoked, expiring} {
		if _, ok := s.Authenticate(text); !ok {
			t.Fatal("a fresh key is unknown")
		}
	}
	if err := s.RevokeKey(key.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Authenticate(revoked); ok {
		t.Error("a revoked key still works")
	}
	if _, ok := open(t, dir).Authenticate(revoked); ok {
		t.Error("a revoked key works again after a restart")
	}
	now = now.Add(time.Hour)
	if _, ok := s.Authenticate(expiring); ok {
		t.Error("a key works at its expiry")
	}
	if keys := s.Keys("acme"); len(keys) != 2 || !keys[0].Revoked || keys[1].Revoked {
		t.Errorf("the listing shows %+v", keys)
	}
	if err := s.RevokeKey(UUID{1}); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoking an unknown key: %v", err)
	}
}

func TestNoKeyTextInTheFolder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	mustCluster(t, s, NewCluster{Slug: "acme"})
	text, _ := mustKey(t, s, NewKey{Cluster: "acme", Scopes: AllScopes()})
	secret := strings.TrimPrefix(text, "qk_live_")
	files := 0
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), secret) {
			t.Errorf("%s holds a key's text", e.Name())
		}
		info, statErr := e.Info()
		if statErr == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
		return errors.Join(err, statErr)
	})
	if err != nil || files != 1 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestSlugs(t *testing.T) {
	s := open(t, t.TempDir())
	for slug, legal := range map[string]bool{
		"a": true, "0": true, "a-b": true, "acme-prod": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "a-": false, "-": false, "A": false, "a.b": false, "a_b": false, "ä": false,
		strings.Repeat("a", 64): false,
	} {
		_, err := s.CreateCluster(NewCluster{Slug: slug})
		if legal != (err == nil) || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("slug %q: %v", slug, err)
		}
	}
	if _, err := s.CreateCluster(NewCluster{Slug: "a"}); !errors.Is(err, ErrExists) {
		t.Errorf("a second cluster of one slug: %v", err)
	}
}

func TestRefusedChangesLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	mustCluster(t, s, NewCluster{Slug: "acme"})
	before, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"plan": func() error { _, err := s.CreateCluster(NewCluster{Slug: "b", Plan: "gold"}); return err },
		"tenant": func() error {
			_, err := s.CreateCluster(NewCluster{Slug: "b", TenantID: UUID{9}})
			return err
		},
		"set plan":    func() error { return s.SetPlan("acme", "gold") },
		"cluster":     func() error { _, _, err := s.CreateKey(NewKey{Cluster: "nope"}); return err },
		"environment": func() error { _, _, err := s.CreateKey(NewKey{Cluster: "acme", Env: "a_b"}); return err },
		"status":      func() error { return s.SetStatus("nope", Suspended) },
		"tenant status": func() error {
			return s.SetTenantStatus(UUID{9}, Suspended)
		},
	} {
		if err := change(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || string(after) != string(before) {
		t.Errorf("the file changed (%v)", err)
	}
	if len(s.Clusters()) != 1 {
		t.Errorf("clusters: %v", s.Clusters())
	}
}

func TestAFileThatCannotBeWrittenChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	mustCluster(t, s, NewCluster{Slug: "acme"})
	text, key := mustKey(t, s, NewKey{Cluster: "acme"})
	if err := os.Mkdir(filepath.Join(dir, FileName+".next"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeKey(key.ID); err == nil {
		t.Fatal("a change that reached no disk was reported as done")
	}
	if _, ok := s.Authenticate(text); !ok {
		t.Error("a change that failed is in force until the next start only")
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"not json":       `{`,
		"version":        `{"version":2}`,
		"unknown tenant": `{"version":1,"clusters":[{"id":"5f0c7c1e-9a55-4f4e-8a0e-6f1f3f0d1a77","slug":"a","plan":"free"}]}`,
		"key of nobody":  `{"version":1,"keys":[{"id":"5f0c7c1e-9a55-4f4e-8a0e-6f1f3f0d1a77","hash":"` + strings.Repeat("0", 64) + `"}]}`,
		"key with text":  `{"version":1,"keys":[{"id":"5f0c7c1e-9a55-4f4e-8a0e-6f1f3f0d1a77","hash":"qk_live_x"}]}`,
		"uuid":           `{"version":1,"tenants":[{"id":"nope"}]}`,
		"zero tenant":    `{"version":1,"tenants":[{"name":"x"}]}`,
		"no hex":         `{"version":1,"keys":[{"id":"5f0c7c1e-9a55-4f4e-8a0e-6f1f3f0d1a77","hash":"` + strings.Repeat("Z", 64) + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir, nil); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestOverrides(t *testing.T) {
	free := func(o string) Limits {
		var overrides Overrides
		if err := json.Unmarshal([]byte(o), &overrides); err != nil {
			t.Fatal(err)
		}
		plan, _ := planByCode(Plans(), PlanFree)
		return overrides.resolve(plan.Limits)
	}
	for _, tc := range []struct {
		name, overrides, want string
		limit                 func(Limits) Limit
	}{
		{"absent: the plan's", `{}`, "262144", func(l Limits) Limit { return l.MaxPayloadBytes }},
		{"number", `{"max_payload_bytes":64}`, "64", func(l Limits) Limit { return l.MaxPayloadBytes }},
		{"zero is a number", `{"max_queues":0}`, "0", func(l Limits) Limit { return l.MaxQueues }},
		{"null: unlimited", `{"max_payload_bytes":null}`, "unlimited", func(l Limits) Limit { return l.MaxPayloadBytes }},
		{"text: the plan's", `{"max_payload_bytes":"64"}`, "262144", func(l Limits) Limit { return l.MaxPayloadBytes }},
		{"list: the plan's", `{"max_payload_bytes":[64]}`, "262144", func(l Limits) Limit { return l.MaxPayloadBytes }},
		{"true: the plan's", `{"max_payload_bytes":true}`, "262144", func(l Limits) Limit { return l.MaxPayloadBytes }},
		{"batch items unset: the ceiling", `{"max_batch_items":null}`, "10000", func(l Limits) Limit { return l.MaxBatchItems }},
		{"batch items above the ceiling", `{"max_batch_items":50000}`, "50000", func(l Limits) Limit { return l.MaxBatchItems }},
		{"burst unset: twice the rate", `{"req_burst":null}`, "10", func(l Limits) Limit { return l.ReqBurst }},
		{"burst of no rate", `{"max_req_per_sec":null,"req_burst":null}`, "unlimited", func(l Limits) Limit { return l.ReqBurst }},
		{"a fraction", `{"max_req_per_sec":0.5}`, "0.5", func(l Limits) Limit { return l.MaxReqPerSec }},
		{"monthly is not overridable", `{"monthly_msgs_quota":1}`, "unlimited", func(l Limits) Limit { return l.MonthlyMsgsQuota }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.limit(free(tc.overrides)).String(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestBootstrapOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	text, created, err := s.Bootstrap("acme")
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	grant, ok := s.Authenticate(text)
	if !ok || grant.Scopes != AllScopes() || grant.Cluster.Slug != "acme" {
		t.Errorf("grant %+v, %v", grant, ok)
	}
	for _, slug := range []string{"acme", "other"} {
		if text, created, err := open(t, dir).Bootstrap(slug); created || text != "" || err != nil {
			t.Errorf("a folder that has a cluster was given %s too: %v, %v", slug, created, err)
		}
	}
	if _, _, err := open(t, t.TempDir()).Bootstrap("No"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a slug that is none: %v", err)
	}
}

func TestTheWorseStatusWins(t *testing.T) {
	for _, tc := range []struct{ cluster, tenant, want Status }{
		{Active, Active, Active},
		{Active, Grace, PushBlocked},
		{PushBlocked, Active, PushBlocked},
		{PushBlocked, Suspended, Suspended},
		{Active, Suspended, Suspended},
		{Suspended, Deleting, Deleting},
		{Deleting, Active, Deleting},
		{"on holiday", Active, Suspended},
		{Active, "", Suspended},
	} {
		if got := worse(tc.cluster, tc.tenant); got != tc.want {
			t.Errorf("cluster %q, tenant %q: %q, want %q", tc.cluster, tc.tenant, got, tc.want)
		}
	}
}

func TestTenantStatusReachesItsClusters(t *testing.T) {
	s := open(t, t.TempDir())
	c := mustCluster(t, s, NewCluster{Slug: "acme"})
	mustCluster(t, s, NewCluster{Slug: "other"})
	if err := s.SetTenantStatus(c.TenantID, Grace); err != nil {
		t.Fatal(err)
	}
	acme, _ := s.BySlug("acme")
	other, _ := s.BySlug("other")
	if acme.Status != PushBlocked || other.Status != Active {
		t.Errorf("acme %s, other %s", acme.Status, other.Status)
	}
}

func TestScopeNames(t *testing.T) {
	if s, err := ParseScopes("produce", "consume", "admin", "read"); err != nil || s != AllScopes() {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := ParseScopes("write"); err == nil {
		t.Error("an unknown scope was accepted")
	}
}

// TestLookupsDuringChanges is for the race detector: every reader sees whole
// snapshots while keys come and go.
func TestLookupsDuringChanges(t *testing.T) {
	s := open(t, t.TempDir())
	mustCluster(t, s, NewCluster{Slug: "acme"})
	text, _ := mustKey(t, s, NewKey{Cluster: "acme"})
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() { lookUntil(t, s, text, stop) })
	}
	for range 20 {
		_, key := mustKey(t, s, NewKey{Cluster: "acme"})
		if err := s.RevokeKey(key.ID); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
}

func lookUntil(t *testing.T, s *Store, text string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if _, ok := s.Authenticate(text); !ok {
			t.Error("a key that is not revoked was unknown for a moment")
			return
		}
	}
}

func TestUUIDText(t *testing.T) {
	u := newUUID()
	again, err := ParseUUID(u.String())
	if err != nil || again != u {
		t.Errorf("%s reads as %s, %v", u, again, err)
	}
	for _, bad := range []string{"", "x", strings.Repeat("-", 36), u.String() + "0", strings.Replace(u.String(), "-", "0", 1)} {
		if _, err := ParseUUID(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestEditOverrides(t *testing.T) {
	s := open(t, t.TempDir())
	mustCluster(t, s, NewCluster{Slug: "acme", Plan: PlanFree, Overrides: Overrides{"max_queues": json.RawMessage("3")}})
	edit := func(name, value string) error {
		columns := map[string]json.RawMessage{name: nil}
		if value != "" {
			columns[name] = json.RawMessage(value)
		}
		return s.EditOverrides("acme", columns)
	}
	if err := errors.Join(edit("max_req_per_sec", "1.5"), edit("max_retained_bytes", "null"), edit("max_queues", "")); err != nil {
		t.Fatal(err)
	}
	v, _ := s.BySlug("acme")
	if got := []string{v.Limits.MaxReqPerSec.String(), v.Limits.MaxRetainedBytes.String(), v.Limits.MaxQueues.String()}; strings.Join(got, " ") != "1.5 unlimited 20" {
		t.Errorf("limits %v", got)
	}
	for name, value := range map[string]string{"max_quees": "1", "monthly_msgs_quota": "1", "max_queues": `"5"`, "req_burst": "-1", "msgs_burst": "x"} {
		if err := edit(name, value); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	if err := s.EditOverrides("nope", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown cluster: %v", err)
	}
}

func TestTenants(t *testing.T) {
	s := open(t, t.TempDir())
	made, err := s.CreateTenant("Acme Ltd")
	if err != nil {
		t.Fatal(err)
	}
	mustCluster(t, s, NewCluster{Slug: "one", TenantID: made.ID})
	mustCluster(t, s, NewCluster{Slug: "two"})
	if got := s.Tenants(); len(got) != 2 || got[0] != made || got[1].Name != "two" {
		t.Errorf("tenants %+v", got)
	}
	if _, err := s.CreateTenant(" "); !errors.Is(err, ErrInvalid) {
		t.Errorf("a tenant without a name: %v", err)
	}
}
