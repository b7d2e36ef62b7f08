// Package forgedscope writes a Scope for a tenant of its choice.
package forgedscope

import "github.com/queen-mq/queen-edge/tenancy"

func use(id tenancy.ID) tenancy.Scope {
	return tenancy.Scope{id: id} // want: cannot refer to unexported field id
}
