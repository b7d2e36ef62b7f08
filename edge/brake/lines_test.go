package brake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// hold takes n places for a cell that does not answer.
func hold(t *testing.T, b *Brakes, n int, from func(int) netip.Prefix, lane string) (free func()) {
	t.Helper()
	var held []func(tenancy.Verdict)
	for i := range n {
		leave, err := b.Enter(t.Context(), from(i), lane)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, leave)
	}
	return func() {
		for _, leave := range held {
			leave(tenancy.Unsure)
		}
	}
}

// Logins that wait for the room of one lane do not keep those of another lane from
// their address, however many they are.
func TestLaneDoesNotBlockAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		free := hold(t, b, 128, func(i int) netip.Prefix { return address(100 + i) }, "flooded")
		var wg sync.WaitGroup
		for range 100 { // from an address that many share
			wg.Go(func() {
				if err := check(b, address(1), "flooded", cellTime, tenancy.Taken); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		begin := time.Now()
		if err := check(b, address(1), "other", cellTime, tenancy.Taken); err != nil || time.Since(begin) != cellTime {
			t.Errorf("another lane: %v after %v", err, time.Since(begin))
		}
		free()
		wg.Wait()
		wantNobody(t, b)
	})
}

// Nor do logins that wait for the room of their address take that of a lane.
func TestAddressDoesNotBlockALane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		free := hold(t, b, 16, always(address(1)), "acme")
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() { _ = check(b, address(1), "acme", cellTime, tenancy.Taken) })
		}
		synctest.Wait()
		begin := time.Now()
		for i := range 100 {
			wg.Go(func() {
				if err := check(b, address(2+i), "acme", cellTime, tenancy.Taken); err != nil || time.Since(begin) != cellTime {
					t.Errorf("another address: %v after %v", err, time.Since(begin))
				}
			})
		}
		time.Sleep(2 * cellTime)
		free()
		wg.Wait()
		wantNobody(t, b)
	})
}

// Whoever waits for a lane, and whose address is refused much, has no more of its
// line than what the address's own would have.
func TestBadAddressInALanesLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		for range 10 { // fewer than its burst: there is room for six checks
			if err := check(b, address(1), "acme", 0, tenancy.Refused); err != nil {
				t.Fatal(err)
			}
		}
		free := hold(t, b, 128-10, func(i int) netip.Prefix { return address(100 + i) }, "acme")
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() { _ = check(b, address(1), "acme", cellTime, tenancy.Taken) })
		}
		synctest.Wait()
		if n := b.lanes.known["acme"].waiting(); n != 16 {
			t.Errorf("%d of one address wait for the lane, want 16", n)
		}
		free()
		wg.Wait()
		wantNobody(t, b)
	})
}

// Whatever comes, at whatever time, and whoever gives up: nobody is forgotten, no
// brake has more under way than its burst, and when all is over nobody is left.
func TestBrakesKeepTheirBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := limits()
		cfg.Address, cfg.Lane, cfg.Process, cfg.Known = Limits{4, 2}, Limits{8, 4}, Limits{16, 8}, 32
		b := New(cfg)
		rng := rand.New(rand.NewPCG(1, 2))
		var wg sync.WaitGroup
		passed := 0
		for range 5000 {
			from, lane := address(rng.IntN(40)), fmt.Sprint(rng.IntN(5))
			patience, took := time.Duration(rng.IntN(int(3*time.Second))), time.Duration(rng.IntN(int(300*time.Millisecond)))
			verdict := []tenancy.Verdict{tenancy.Taken, tenancy.Taken, tenancy.Unsure, tenancy.Refused}[rng.IntN(4)]
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				leave, err := b.Enter(ctx, from, lane)
				if err != nil {
					if !errors.Is(err, tenancy.ErrBraked) {
						t.Error(err)
					}
					return
				}
				b.mu.Lock()
				passed++
				for k, br := range b.addresses.known {
					if br.checks > 4 || br.beyond < 0 {
						t.Errorf("%v: %d checks, %d beyond", k, br.checks, br.beyond)
					}
				}
				if b.process.checks > 16 || len(b.addresses.known) > 32 {
					t.Errorf("%d checks, %d addresses", b.process.checks, len(b.addresses.known))
				}
				b.mu.Unlock()
				time.Sleep(took)
				leave(verdict)
			})
			time.Sleep(time.Duration(rng.IntN(int(20 * time.Millisecond))))
		}
		wg.Wait()
		if passed < 1000 {
			t.Errorf("%d of 5000 passed", passed)
		}
		wantNobody(t, b)
	})
}

// wantNobody checks that no brake has anybody.
func wantNobody(t *testing.T, b *Brakes) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	look := func(what any, br *brake, resting int) {
		if !br.isIdle() || br.wake != nil || br.shelf != resting && resting < 0 || br.shelf < 0 && resting >= 0 {
			t.Errorf("%v: %d checks, %d waiting, %d beyond, shelf %d", what, br.checks, br.waiting(), br.beyond, br.shelf)
		}
	}
	for k, br := range b.addresses.known {
		look(k, br, 0)
	}
	for k, br := range b.lanes.known {
		look(k, br, 0)
	}
	look("process", b.process, -1)
	if len(b.addresses.known) != len(b.addresses.shelf) || len(b.addresses.names) != len(b.addresses.shelf) {
		t.Errorf("%d addresses, %d names, %d at rest", len(b.addresses.known), len(b.addresses.names), len(b.addresses.shelf))
	}
}

// Names that strangers make up are one lane: each of them would have a burst of
// its own otherwise.
func TestMadeUpNamesAreOneLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := limits()
		cfg.LaneOf = func(name string) string {
			if name == "acme" {
				return name
			}
			return ""
		}
		b := New(cfg)
		made := flood(b, func(i int) netip.Prefix { return address(i % 200) }, func(i int) string { return fmt.Sprint(i) }, 600, 20*time.Second)
		if made < 128+16*19 || made > 128+16*20 {
			t.Errorf("%d checks in 20 s", made)
		}
		begin := time.Now()
		if err := check(b, address(1<<20), "acme", cellTime, tenancy.Taken); err != nil || time.Since(begin) != cellTime {
			t.Errorf("a lane of the list: %v after %v", err, time.Since(begin))
		}
		if n := len(b.lanes.known); n > 2 {
			t.Errorf("%d lanes", n)
		}
	})
}

// BenchmarkNewAddress is a login of an address that nobody knows, while the book
// is full of such that were refused.
func BenchmarkNewAddress(bench *testing.B) {
	for _, known := range []int{64, 8192, 65536} {
		bench.Run(fmt.Sprint(known), func(bench *testing.B) {
			now := time.Now()
			b := New(Config{
				Address: Limits{16, 0.001}, Lane: Limits{1 << 40, 1}, Process: Limits{1 << 40, 1},
				Wait: time.Second, Known: known, Clock: func() time.Time { return now },
			})
			at := func(i int) netip.Prefix {
				return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}), 32)
			}
			for i := range known {
				_ = check(b, at(i), "", 0, tenancy.Refused)
			}
			bench.ResetTimer()
			for i := range bench.N {
				_ = check(b, at(known+i), "", 0, tenancy.Refused)
			}
		})
	}
}
