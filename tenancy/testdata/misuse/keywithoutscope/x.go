// Package keywithoutscope asks for a key and says no tenant.
package keywithoutscope

import "github.com/queen-mq/queen-edge/tenancy"

func use() tenancy.Key[string] {
	return tenancy.KeyOf("orders") // want: not enough arguments in call to tenancy.KeyOf
}
