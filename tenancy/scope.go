package tenancy

import "time"

// ID names a tenant inside this process: the cluster id the cell gave, or, for
// a credential the cell names no cluster for, a keyed hash of the credential.
// The zero ID is nobody; using it panics.
type ID struct{ text string }

// String is safe to log: it is either the cell's cluster id or a keyed hash.
func (id ID) String() string { return id.text }

// Named reports whether the cell named the tenant: String is then its cluster id.
func (id ID) Named() bool { return !id.IsZero() && id.text[0] != ownName }

// ownName begins the ID of a credential that stands for itself. It is not in the
// set of characters that a cluster id is made of.
const ownName = '#'

// IsZero reports whether the ID is nobody's.
func (id ID) IsZero() bool { return id.text == "" }

// Credential identifies a (bearer, Host) pair inside this process by a keyed
// hash. It is comparable, printable and says nothing about the bearer.
type Credential struct{ sum [16]byte }

// Claim is what a client said about itself: a bearer and the Host to forward.
// Nothing has been proved.
type Claim struct {
	bearer Secret
	host   string
}

// NewClaim makes a Claim. Host is the name to send as HTTP Host, already
// normalised; empty means the cell URL's own authority.
func NewClaim(bearer Secret, host string) Claim { return Claim{bearer: bearer, host: host} }

// Bearer is the credential to present.
func (c Claim) Bearer() Secret { return c.bearer }

// Host is the HTTP Host to present; empty means the cell URL's authority.
func (c Claim) Host() string { return c.host }

// Rights are the scopes /auth/me gave a credential (cell-http §2.6). Known is
// false where the cell did not say; then only the cell's answers decide.
type Rights struct {
	Known                         bool
	Produce, Consume, Admin, Read bool
}

// Scope is a proved credential of one tenant. It never changes during a
// connection. The zero Scope panics wherever it is used.
type Scope struct {
	id         ID
	resolved   bool
	credential Credential
	claim      Claim
	rights     Rights
	expires    time.Time
	can        Capabilities
}

// ID is the tenant.
func (s Scope) ID() ID { return s.must().id }

// Resolved reports whether the cell named the tenant's cluster. An unresolved
// credential stands for itself.
func (s Scope) Resolved() bool { return s.must().resolved }

// Credential tells this credential from its siblings of the same tenant.
func (s Scope) Credential() Credential { return s.must().credential }

// Bearer is presented with every cell call made for this Scope.
func (s Scope) Bearer() Secret { return s.must().claim.bearer }

// Host is the HTTP Host of every cell call; empty means the URL's authority.
func (s Scope) Host() string { return s.must().claim.host }

// Rights are what /auth/me said this credential may do.
func (s Scope) Rights() Rights { return s.must().rights }

// Expires is when the credential ends, as the cell said or, where it did not, as
// a JWT says of itself; zero: it has no end.
func (s Scope) Expires() time.Time {
	if end := s.must().expires; !end.IsZero() {
		return end
	}
	return s.claim.bearer.expiry()
}

// Capabilities are what the cell announced when the credential was settled.
func (s Scope) Capabilities() Capabilities { return s.must().can }

// String names the tenant only.
func (s Scope) String() string { return "scope(" + s.id.text + ")" }

func (s Scope) must() Scope {
	if s.id.IsZero() {
		panic("tenancy: zero Scope used")
	}
	return s
}
