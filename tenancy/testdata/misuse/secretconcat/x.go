// Package secretconcat builds text with a bearer in it.
package secretconcat

import "github.com/queen-mq/queen-edge/tenancy"

func use(s tenancy.Secret) string {
	return "Bearer " + s // want: mismatched types untyped string and tenancy.Secret
}
