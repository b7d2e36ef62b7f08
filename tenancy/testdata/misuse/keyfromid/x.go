// Package keyfromid makes a key from a tenant's name in place of its proof.
package keyfromid

import "github.com/queen-mq/queen-edge/tenancy"

func use(id tenancy.ID) tenancy.Key[string] {
	return tenancy.KeyOf(id, "orders") // want: cannot use id (variable of struct type tenancy.ID) as tenancy.Scope value
}
