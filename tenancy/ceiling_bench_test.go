package tenancy_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/queen-mq/queen-edge/tenancy"
)

// BenchmarkCeilingBesideWaiters is what a tenant's request pays at a ceiling while
// many of another tenant's wait at it.
func BenchmarkCeilingBesideWaiters(b *testing.B) {
	for _, waiters := range []int{0, 10, 10_000} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			c := tenancy.NewCeiling(1<<40, 0.25).PerTenant(10)
			s := scopes(b, 2)
			full, other := s[0], s[1]
			c.Take(full, 10)
			ctx, leave := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			for range waiters {
				wg.Go(func() { _, _ = c.Wait(ctx, full, 5) })
			}
			b.ResetTimer()
			for range b.N {
				n, _ := c.Wait(context.Background(), other, 5)
				c.Give(other, n)
			}
			b.StopTimer()
			leave()
			wg.Wait()
		})
	}
}
