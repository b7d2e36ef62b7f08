package edge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/tenancy"
)

// byPrefix names the cluster of a bearer: what stands before its dot.
type byPrefix struct{}

func (byPrefix) ListQueuesAs(context.Context, tenancy.Claim) (struct{}, error) {
	return struct{}{}, nil
}

func (byPrefix) Identify(_ context.Context, c tenancy.Claim) (tenancy.Identity, error) {
	cluster, _, _ := strings.Cut(c.Bearer().Reveal(), ".")
	return tenancy.Identity{ClusterID: cluster}, nil
}

func scopes(t *testing.T, bearers ...string) []tenancy.Scope {
	t.Helper()
	v := tenancy.NewVerifier[struct{}](byPrefix{}, tenancy.VerifierConfig{})
	var out []tenancy.Scope
	for _, bearer := range bearers {
		p, err := v.Verify(t.Context(), tenancy.NewClaim(tenancy.NewSecret(bearer), ""))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p.Scope)
	}
	return out
}

// A tenant whose cluster does not answer does not keep the cell from being asked
// about another's token, however many tokens it has.
func TestReverifyIsFair(t *testing.T) {
	bearers := []string{"globex.1"}
	for i := range 5 * checksAtOnce {
		bearers = append(bearers, fmt.Sprint("acme.", i))
	}
	all := scopes(t, bearers...)
	globex := all[0].ID()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := make(map[tenancy.ID]int)
		ctx, stop := context.WithCancel(t.Context())
		w := newWatch(30*time.Second, .25, time.Now, func(ctx context.Context, s tenancy.Scope) bool {
			mu.Lock()
			asked[s.ID()]++
			mu.Unlock()
			if s.ID() != globex {
				<-ctx.Done()
			}
			return false
		}, zap.NewNop())
		for i, s := range all {
			// Those that hang are due first.
			w.add(&conn{}, s, time.Now().Add(time.Duration(-i)*time.Second/10))
		}
		done := make(chan struct{})
		go w.run(ctx, done)
		time.Sleep(95 * time.Second)
		synctest.Wait()
		mu.Lock()
		if n := asked[globex]; n != 3 {
			t.Errorf("globex's token was asked about %d times in 95 s, want 3", n)
		}
		if n := asked[all[1].ID()]; n > checksAtOnce {
			t.Errorf("%d calls at once", n)
		}
		mu.Unlock()
		stop()
		<-done
	})
}
