// Package claimconverted turns a Claim into a Scope without asking the cell.
package claimconverted

import "github.com/queen-mq/queen-edge/tenancy"

func use(c tenancy.Claim) tenancy.Scope {
	return tenancy.Scope(c) // want: cannot convert c (variable of struct type tenancy.Claim) to type tenancy.Scope
}
