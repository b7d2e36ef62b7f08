// Package claimasscope takes what a client said for what the cell confirmed.
package claimasscope

import "github.com/queen-mq/queen-edge/tenancy"

func use(c tenancy.Claim) tenancy.Key[string] {
	return tenancy.KeyOf(c, "orders") // want: cannot use c (variable of struct type tenancy.Claim) as tenancy.Scope value
}
