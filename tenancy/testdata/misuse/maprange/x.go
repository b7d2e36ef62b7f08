// Package maprange walks over every tenant's entries.
package maprange

import "github.com/queen-mq/queen-edge/tenancy"

func use(m *tenancy.Map[string, int]) {
	for range m { // want: cannot range over m
	}
}
