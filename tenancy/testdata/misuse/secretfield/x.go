// Package secretfield reads the bearer itself.
package secretfield

import "github.com/queen-mq/queen-edge/tenancy"

func use(s tenancy.Secret) string {
	return s.text // want: s.text undefined (cannot refer to unexported field text)
}
