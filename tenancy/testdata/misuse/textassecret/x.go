// Package textassecret passes plain text where a bearer is kept.
package textassecret

import "github.com/queen-mq/queen-edge/tenancy"

func use() tenancy.Claim {
	return tenancy.NewClaim("qk_live", "host") // want: cannot use "qk_live" (untyped string constant) as tenancy.Secret value
}
