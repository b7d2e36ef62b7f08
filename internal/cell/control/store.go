package control

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Store is the control data of one data folder. All methods are safe for
// concurrent use; a nil error of a change means that it is on disk and that
// the next request sees it.
type Store struct {
	dir   string
	clock func() time.Time
	plans []Plan

	// current is what requests read, without a lock.
	current atomic.Pointer[snapshot]

	// changing lets one change at a time read, write the file and publish.
	// Only changes wait for it.
	changing sync.Mutex
}

// Open reads the control file of a data folder, which must exist; without a
// file there are no clusters yet. A nil clock is the wall clock.
func Open(dir string, clock func() time.Time) (*Store, error) {
	return OpenWithPlans(dir, clock, Plans())
}

// OpenWithPlans is Open with another plan table. Every plan that the folder's
// clusters have must be in it.
func OpenWithPlans(dir string, clock func() time.Time, plans []Plan) (*Store, error) {
	if clock == nil {
		clock = time.Now
	}
	doc, err := readDocument(dir)
	if err != nil {
		return nil, err
	}
	snap, err := newSnapshot(doc, plans)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, clock: clock, plans: plans}
	s.current.Store(snap)
	return s, nil
}

// Authenticate finds what a key's text grants. False: unknown, revoked or
// expired, and nobody learns which.
func (s *Store) Authenticate(text string) (Grant, bool) {
	e, found := s.current.Load().byHash[sha256.Sum256([]byte(text))]
	if ends := e.grant.ExpiresAt; !found || !ends.IsZero() && !s.clock().Before(ends) {
		return Grant{}, false
	}
	return e.grant, true
}

// BySlug finds a cluster as requests see it.
func (s *Store) BySlug(slug string) (*View, bool) {
	v, found := s.current.Load().bySlug[slug]
	return v, found
}

// Clusters lists every cluster in order of creation.
func (s *Store) Clusters() []Cluster { return slices.Clone(s.current.Load().doc.Clusters) }

// Keys lists a cluster's keys in order of creation, revoked ones too.
func (s *Store) Keys(slug string) []Key {
	doc := s.current.Load().doc
	i := clusterIndex(doc, slug)
	if i < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(doc.Keys), func(k Key) bool { return k.ClusterID != doc.Clusters[i].ID })
}

// NewCluster says what cluster to create.
type NewCluster struct {
	Slug      string
	TenantID  UUID      // zero: a paying tenant of its own
	Plan      string    // empty: PlanLocal
	Overrides Overrides // may be nil
}

// CreateCluster adds an active cluster. Errors: ErrExists, ErrInvalid,
// ErrNotFound for an unknown tenant, or the disk's.
func (s *Store) CreateCluster(n NewCluster) (c Cluster, err error) {
	err = s.change(func(doc *document) error {
		c, err = s.addCluster(doc, n)
		return err
	})
	return c, err
}

// addCluster puts a cluster into a document, and its tenant where it has none.
func (s *Store) addCluster(doc *document, n NewCluster) (Cluster, error) {
	if n.Plan == "" {
		n.Plan = PlanLocal
	}
	if n.TenantID.IsZero() {
		n.TenantID = appendTenant(doc, n.Slug).ID
	} else if !slices.ContainsFunc(doc.Tenants, func(t Tenant) bool { return t.ID == n.TenantID }) {
		return Cluster{}, fmt.Errorf("%w: tenant %s", ErrNotFound, n.TenantID)
	}
	c := Cluster{
		ID: newUUID(), Slug: n.Slug, TenantID: n.TenantID, BrokerTenant: newUUID(),
		Status: Active, Plan: n.Plan, Overrides: maps.Clone(n.Overrides), CreatedAt: s.clock().UTC(),
	}
	doc.Clusters = append(doc.Clusters, c)
	return c, nil
}

// CreateTenant adds an active paying tenant. Its name need not be the only one
// of its kind; its id is.
func (s *Store) CreateTenant(name string) (t Tenant, err error) {
	if strings.TrimSpace(name) == "" || len(name) > maxNameLength {
		return Tenant{}, fmt.Errorf("%w: a tenant's name must have 1 to %d bytes", ErrInvalid, maxNameLength)
	}
	err = s.change(func(doc *document) error {
		t = appendTenant(doc, name)
		return nil
	})
	return t, err
}

// maxNameLength bounds a tenant's name, in bytes.
const maxNameLength = 128

// appendTenant puts an active tenant into a document.
func appendTenant(doc *document, name string) Tenant {
	t := Tenant{ID: newUUID(), Name: name, Status: Active}
	doc.Tenants = append(doc.Tenants, t)
	return t
}

// Tenants lists every paying tenant in order of creation.
func (s *Store) Tenants() []Tenant { return slices.Clone(s.current.Load().doc.Tenants) }

// NewKey says what key to create.
type NewKey struct {
	Cluster   string // slug
	Env       string // empty: "live"
	Scopes    Scopes
	ExpiresAt time.Time // zero: never
}

// CreateKey adds a key and returns its text, which is kept nowhere and cannot
// be had again.
func (s *Store) CreateKey(n NewKey) (text string, key Key, err error) {
	err = s.change(func(doc *document) error {
		text, key, err = s.addKey(doc, n)
		return err
	})
	if err != nil {
		return "", Key{}, err
	}
	return text, key, nil
}

// addKey puts a fresh key into a document.
func (s *Store) addKey(doc *document, n NewKey) (string, Key, error) {
	i := clusterIndex(*doc, n.Cluster)
	if i < 0 {
		return "", Key{}, fmt.Errorf("%w: cluster %q", ErrNotFound, n.Cluster)
	}
	if n.Env == "" {
		n.Env = "live"
	}
	text, err := newKeyText(n.Env)
	if err != nil {
		return "", Key{}, err
	}
	sum := sha256.Sum256([]byte(text))
	key := Key{
		ID: newUUID(), ClusterID: doc.Clusters[i].ID, Hash: hex.EncodeToString(sum[:]),
		Scopes: n.Scopes, CreatedAt: s.clock().UTC(),
	}
	if !n.ExpiresAt.IsZero() {
		at := n.ExpiresAt.UTC()
		key.ExpiresAt = &at
	}
	doc.Keys = append(doc.Keys, key)
	return text, key, nil
}

// Bootstrap gives a folder without clusters its first one, and a key with
// every scope, in one change: there is no cluster left behind that nobody has
// a key of. A folder that has clusters stays as it is.
func (s *Store) Bootstrap(slug string) (text string, created bool, err error) {
	if len(s.Clusters()) > 0 {
		return "", false, nil
	}
	err = s.change(func(doc *document) error {
		if _, err := s.addCluster(doc, NewCluster{Slug: slug}); err != nil {
			return err
		}
		text, _, err = s.addKey(doc, NewKey{Cluster: slug, Scopes: AllScopes()})
		return err
	})
	if err != nil {
		return "", false, err
	}
	return text, true, nil
}

// RevokeKey makes a key unknown to every request that comes after.
func (s *Store) RevokeKey(id UUID) error {
	return s.change(func(doc *document) error {
		i := slices.IndexFunc(doc.Keys, func(k Key) bool { return k.ID == id })
		if i < 0 {
			return fmt.Errorf("%w: key %s", ErrNotFound, id)
		}
		doc.Keys[i].Revoked = true
		return nil
	})
}

// SetStatus changes a cluster's status.
func (s *Store) SetStatus(slug string, status Status) error {
	return s.changeCluster(slug, func(c *Cluster) { c.Status = status })
}

// SetOverrides replaces a cluster's limit_overrides.
func (s *Store) SetOverrides(slug string, o Overrides) error {
	return s.changeCluster(slug, func(c *Cluster) { c.Overrides = maps.Clone(o) })
}

// EditOverrides changes single columns of a cluster's limit_overrides: nil
// takes an override away, so that the plan's value holds again. Errors:
// ErrNotFound, ErrInvalid for a column no override may name or a value that is
// neither a number ≥ 0 nor null.
func (s *Store) EditOverrides(slug string, columns map[string]json.RawMessage) error {
	for name, value := range columns {
		if err := checkOverride(name, value); err != nil {
			return err
		}
	}
	return s.changeCluster(slug, func(c *Cluster) {
		edited := make(Overrides, len(c.Overrides)+len(columns))
		maps.Copy(edited, c.Overrides)
		maps.Copy(edited, columns)
		maps.DeleteFunc(edited, func(_ string, value json.RawMessage) bool { return value == nil })
		c.Overrides = edited
	})
}

// SetPlan moves a cluster to another plan.
func (s *Store) SetPlan(slug, plan string) error {
	return s.changeCluster(slug, func(c *Cluster) { c.Plan = plan })
}

// SetTenantStatus changes a paying tenant's status, and so its clusters'.
func (s *Store) SetTenantStatus(id UUID, status Status) error {
	return s.change(func(doc *document) error {
		i := slices.IndexFunc(doc.Tenants, func(t Tenant) bool { return t.ID == id })
		if i < 0 {
			return fmt.Errorf("%w: tenant %s", ErrNotFound, id)
		}
		doc.Tenants[i].Status = status
		return nil
	})
}

// changeCluster is change for one cluster's fields.
func (s *Store) changeCluster(slug string, edit func(*Cluster)) error {
	return s.change(func(doc *document) error {
		i := clusterIndex(*doc, slug)
		if i < 0 {
			return fmt.Errorf("%w: cluster %q", ErrNotFound, slug)
		}
		edit(&doc.Clusters[i])
		return nil
	})
}

// change edits a copy of the document, writes it down, then shows it to
// requests.
func (s *Store) change(edit func(*document) error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	old := s.current.Load().doc
	doc := document{
		Version:  formatVersion,
		Tenants:  slices.Clone(old.Tenants),
		Clusters: slices.Clone(old.Clusters),
		Keys:     slices.Clone(old.Keys),
	}
	if err := edit(&doc); err != nil {
		return err
	}
	snap, err := newSnapshot(doc, s.plans)
	if err != nil {
		return err
	}
	replaced, err := replaceDocument(s.dir, doc)
	if replaced {
		// What a next boot may read must be what requests see: a revocation
		// whose last sync failed is in force all the same.
		s.current.Store(snap)
	}
	return err
}

// clusterIndex finds a slug in a document, or −1.
func clusterIndex(doc document, slug string) int {
	return slices.IndexFunc(doc.Clusters, func(c Cluster) bool { return c.Slug == slug })
}
