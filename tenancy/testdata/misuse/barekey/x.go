// Package barekey looks tenant state up by a name alone.
package barekey

import "github.com/queen-mq/queen-edge/tenancy"

func use(m *tenancy.Map[string, int]) (int, bool) {
	return m.Get("orders") // want: cannot use "orders" (untyped string constant) as tenancy.Key[string] value
}
