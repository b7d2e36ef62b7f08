package control

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Status is the state of a tenant or a cluster. An unknown text counts as
// suspended (cell-http §5.4).
type Status string

// The statuses. Grace is a tenant's alone and blocks pushes.
const (
	Active      Status = "active"
	Grace       Status = "grace"
	PushBlocked Status = "push_blocked"
	Suspended   Status = "suspended"
	Deleting    Status = "deleting"
)

// severity orders statuses by how much they forbid.
func (s Status) severity() int {
	switch s {
	case Active:
		return 0
	case Grace, PushBlocked:
		return 1
	case Deleting:
		return 3
	default:
		return 2
	}
}

// worse is the status a cluster has under its tenant's.
func worse(cluster, tenant Status) Status {
	s := cluster
	if tenant.severity() > cluster.severity() {
		s = tenant
	}
	switch s.severity() {
	case 0:
		return Active
	case 1:
		return PushBlocked
	case 3:
		return Deleting
	default:
		return Suspended
	}
}

// Scopes are what a key may do. They are independent of each other, except
// that Admin implies Read.
type Scopes struct {
	Produce bool `json:"produce"`
	Consume bool `json:"consume"`
	Admin   bool `json:"admin"`
	Read    bool `json:"read"`
}

// AllScopes is every scope.
func AllScopes() Scopes { return Scopes{Produce: true, Consume: true, Admin: true, Read: true} }

// Names lists the scopes in the order of the contract.
func (s Scopes) Names() []string {
	names := []string{}
	for _, scope := range []struct {
		name string
		has  bool
	}{{"produce", s.Produce}, {"consume", s.Consume}, {"admin", s.Admin}, {"read", s.Read}} {
		if scope.has {
			names = append(names, scope.name)
		}
	}
	return names
}

// ParseScopes reads scope names; no name at all is a key that may do nothing.
func ParseScopes(names ...string) (Scopes, error) {
	var s Scopes
	for _, name := range names {
		switch name {
		case "produce":
			s.Produce = true
		case "consume":
			s.Consume = true
		case "admin":
			s.Admin = true
		case "read":
			s.Read = true
		default:
			return Scopes{}, fmt.Errorf("control: unknown scope %q (produce, consume, admin, read)", name)
		}
	}
	return s, nil
}

// Tenant is a paying tenant. Its clusters are as separate as two strangers'.
type Tenant struct {
	ID     UUID   `json:"id"`
	Name   string `json:"name"`
	Status Status `json:"status"`
}

// Cluster is one logical Queen: the unit of isolation (cell-http §1).
type Cluster struct {
	ID           UUID      `json:"id"`
	Slug         string    `json:"slug"` // first label of its dedicated host names
	TenantID     UUID      `json:"tenant_id"`
	BrokerTenant UUID      `json:"broker_tenant"` // names its data at the broker, never shown
	Status       Status    `json:"status"`
	Plan         string    `json:"plan"`
	Overrides    Overrides `json:"limit_overrides,omitempty"`
	CreatedAt    time.Time `json:"created_at"`
}

// Key is an API key without its text, which nobody keeps.
type Key struct {
	ID        UUID       `json:"id"`
	ClusterID UUID       `json:"cluster_id"`
	Hash      string     `json:"hash"` // lower-case hex SHA-256 of the whole text
	Scopes    Scopes     `json:"scopes"`
	Revoked   bool       `json:"revoked"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
}

// Errors of the Store's methods.
var (
	ErrNotFound = errors.New("control: not found")
	ErrExists   = errors.New("control: already exists")
	ErrInvalid  = errors.New("control: invalid")
)

// checkSlug holds a slug to [a-z0-9]([a-z0-9-]{0,61}[a-z0-9])? (cell-http §2.4).
func checkSlug(slug string) error {
	if len(slug) == 0 || len(slug) > 63 {
		return fmt.Errorf("%w: slug %q must have 1 to 63 characters", ErrInvalid, slug)
	}
	if strings.HasPrefix(slug, "-") || strings.HasSuffix(slug, "-") {
		return fmt.Errorf("%w: slug %q must not begin or end with a dash", ErrInvalid, slug)
	}
	for _, c := range []byte(slug) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return fmt.Errorf("%w: slug %q may hold a-z, 0-9 and dashes only", ErrInvalid, slug)
		}
	}
	return nil
}
