// Package forgedkey writes a Key with a tenant of its choice.
package forgedkey

import "github.com/queen-mq/queen-edge/tenancy"

func use(id tenancy.ID) tenancy.Key[string] {
	return tenancy.Key[string]{id: id, name: "orders"} // want: cannot refer to unexported field id
}
