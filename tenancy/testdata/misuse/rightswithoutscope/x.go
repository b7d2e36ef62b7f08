// Package rightswithoutscope asks a Claim what it may do.
package rightswithoutscope

import "github.com/queen-mq/queen-edge/tenancy"

func use(c tenancy.Claim) bool {
	return c.Rights().Admin // want: c.Rights undefined (type tenancy.Claim has no field or method Rights)
}
