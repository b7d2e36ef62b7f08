// Package positionalkey writes a Key without naming its fields.
package positionalkey

import "github.com/queen-mq/queen-edge/tenancy"

func use(id tenancy.ID) tenancy.Key[string] {
	return tenancy.Key[string]{id, "orders"} // want: implicit assignment to unexported field id
}
