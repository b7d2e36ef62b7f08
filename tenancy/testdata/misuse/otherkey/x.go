// Package otherkey looks a map up with the key of another kind of thing.
package otherkey

import "github.com/queen-mq/queen-edge/tenancy"

type (
	group string
	topic string
)

func use(s tenancy.Scope, m *tenancy.Map[group, int]) (int, bool) {
	return m.Get(tenancy.KeyOf(s, topic("orders"))) // want: as tenancy.Key[group] value
}
