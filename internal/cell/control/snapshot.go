package control

import (
	"encoding/hex"
	"fmt"
	"time"
)

// formatVersion is the version of control.json this program reads and writes.
const formatVersion = 1

// document is control.json.
type document struct {
	Version  int       `json:"version"`
	Tenants  []Tenant  `json:"tenants"`
	Clusters []Cluster `json:"clusters"`
	Keys     []Key     `json:"keys"`
}

// View is a cluster as one request sees it: resolved and immutable.
type View struct {
	ID           string // the cluster's identity for everybody outside
	Slug         string
	TenantID     string // the paying tenant: two clusters may share it
	BrokerTenant UUID
	Status       Status // the worse of cluster's and tenant's
	Limits       Limits // plan with overrides
	Features     Features
}

// Grant is what a proved key gives: its cluster and its scopes.
type Grant struct {
	Cluster *View
	KeyID   string
	Scopes  Scopes
	// ExpiresAt is when the key ends; zero: never.
	ExpiresAt time.Time
}

// entry is a usable key in the index.
type entry struct {
	grant Grant
}

// snapshot is an immutable document with its indexes.
type snapshot struct {
	doc    document
	bySlug map[string]*View
	byHash map[hash]entry // keys that are not revoked
}

// newSnapshot checks a document against a plan table and indexes it.
func newSnapshot(doc document, plans []Plan) (*snapshot, error) {
	tenants := make(map[UUID]Tenant, len(doc.Tenants))
	for _, t := range doc.Tenants {
		if _, twice := tenants[t.ID]; twice || t.ID.IsZero() {
			return nil, fmt.Errorf("%w: tenant id %s is zero or there twice", ErrInvalid, t.ID)
		}
		tenants[t.ID] = t
	}
	s := &snapshot{
		doc:    doc,
		bySlug: make(map[string]*View, len(doc.Clusters)),
		byHash: make(map[hash]entry, len(doc.Keys)),
	}
	views, err := s.indexClusters(tenants, plans)
	if err != nil {
		return nil, err
	}
	return s, s.indexKeys(views)
}

// indexClusters fills bySlug. No two clusters may share an id or a broker
// tenant: that would mix their data.
func (s *snapshot) indexClusters(tenants map[UUID]Tenant, plans []Plan) (map[UUID]*View, error) {
	views := make(map[UUID]*View, len(s.doc.Clusters))
	data := make(map[UUID]bool, len(s.doc.Clusters))
	for _, c := range s.doc.Clusters {
		tenant, known := tenants[c.TenantID]
		plan, planned := planByCode(plans, c.Plan)
		switch {
		case !known:
			return nil, fmt.Errorf("%w: cluster %s has an unknown tenant", ErrInvalid, c.Slug)
		case !planned:
			return nil, fmt.Errorf("%w: cluster %s has the unknown plan %q", ErrInvalid, c.Slug, c.Plan)
		case c.ID.IsZero() || views[c.ID] != nil:
			return nil, fmt.Errorf("%w: cluster id %s is zero or there twice", ErrInvalid, c.ID)
		case c.BrokerTenant.IsZero() || data[c.BrokerTenant]:
			return nil, fmt.Errorf("%w: cluster %s has no broker tenant of its own", ErrInvalid, c.Slug)
		case s.bySlug[c.Slug] != nil:
			return nil, fmt.Errorf("%w: cluster %s", ErrExists, c.Slug)
		}
		if err := checkSlug(c.Slug); err != nil {
			return nil, err
		}
		v := &View{
			ID:           c.ID.String(),
			Slug:         c.Slug,
			TenantID:     c.TenantID.String(),
			BrokerTenant: c.BrokerTenant,
			Status:       worse(c.Status, tenant.Status),
			Limits:       c.Overrides.resolve(plan.Limits),
			Features:     plan.Features,
		}
		views[c.ID], s.bySlug[c.Slug], data[c.BrokerTenant] = v, v, true
	}
	return views, nil
}

// indexKeys fills byHash.
func (s *snapshot) indexKeys(views map[UUID]*View) error {
	ids := make(map[UUID]bool, len(s.doc.Keys))
	for _, k := range s.doc.Keys {
		var h hash
		if !parseHash(&h, k.Hash) {
			return fmt.Errorf("%w: key %s has no SHA-256", ErrInvalid, k.ID)
		}
		if k.ID.IsZero() || ids[k.ID] {
			return fmt.Errorf("%w: key id %s is zero or there twice", ErrInvalid, k.ID)
		}
		if _, twice := s.byHash[h]; twice {
			return fmt.Errorf("%w: key %s is there twice", ErrInvalid, k.ID)
		}
		view := views[k.ClusterID]
		if view == nil {
			return fmt.Errorf("%w: key %s has an unknown cluster", ErrInvalid, k.ID)
		}
		ids[k.ID] = true
		if k.Revoked {
			continue
		}
		e := entry{grant: Grant{Cluster: view, KeyID: k.ID.String(), Scopes: k.Scopes}}
		if k.ExpiresAt != nil {
			e.grant.ExpiresAt = *k.ExpiresAt
		}
		s.byHash[h] = e
	}
	return nil
}

// parseHash reads the lower-case hex form.
func parseHash(h *hash, text string) bool {
	if len(text) != 2*len(h) {
		return false
	}
	_, err := hex.Decode(h[:], []byte(text))
	return err == nil
}
