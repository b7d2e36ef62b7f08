// Package barekeylru keeps something under a name alone.
package barekeylru

import "github.com/queen-mq/queen-edge/tenancy"

func use(l *tenancy.LRU[string, int], topic string) {
	l.Set(topic, 1) // want: cannot use topic (variable of type string) as tenancy.Key[string] value
}
