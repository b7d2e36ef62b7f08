// Package forgedid names a tenant by text.
package forgedid

import "github.com/queen-mq/queen-edge/tenancy"

func use() tenancy.ID {
	return tenancy.ID("acme") // want: cannot convert "acme" (untyped string constant) to type tenancy.ID
}
