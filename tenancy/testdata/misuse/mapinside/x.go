// Package mapinside reaches past the tenant into the map.
package mapinside

import "github.com/queen-mq/queen-edge/tenancy"

func use(m *tenancy.Map[string, int]) int {
	return len(m.m) // want: m.m undefined (cannot refer to unexported field m)
}
