package tenancy

// Key is the only key of tenant state: a tenant and a name. Only KeyOf makes
// one, from a proved Scope, so a forgotten tenant does not compile.
type Key[T comparable] struct {
	id   ID
	name T
}

// KeyOf keys name within the Scope's tenant. A zero Scope panics.
func KeyOf[T comparable](s Scope, name T) Key[T] { return Key[T]{id: s.ID(), name: name} }

// Tenant is the tenant the key belongs to.
func (k Key[T]) Tenant() ID { return k.id }

// Name is the key within its tenant.
func (k Key[T]) Name() T { return k.name }

func (k Key[T]) must() Key[T] {
	if k.id.IsZero() {
		panic("tenancy: zero Key used")
	}
	return k
}
