// Package changedscope moves a connection to another tenant.
package changedscope

import "github.com/queen-mq/queen-edge/tenancy"

func use(s tenancy.Scope, other tenancy.ID) {
	s.id = other // want: s.id undefined
}
