// Package ceilingbyid counts a tenant that has proved nothing.
package ceilingbyid

import "github.com/queen-mq/queen-edge/tenancy"

func use(c *tenancy.Ceiling, claim tenancy.Claim) bool {
	return c.Take(claim, 1) // want: cannot use claim (variable of struct type tenancy.Claim) as tenancy.Scope value
}
