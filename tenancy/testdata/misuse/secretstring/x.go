// Package secretstring takes a bearer for text.
package secretstring

import "github.com/queen-mq/queen-edge/tenancy"

func use(s tenancy.Secret) string {
	return string(s) // want: cannot convert s (variable of struct type tenancy.Secret) to type string
}
