package brake

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/queen-mq/queen-edge/tenancy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limits are those of the product.
func limits() Config {
	return Config{
		Address: Limits{16, 2}, Lane: Limits{128, 16}, Process: Limits{256, 64},
		Wait: 10 * time.Second, Known: 8192, LaneOf: func(name string) string { return name },
	}
}

func address(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
}

// check is one check of a token: through the brakes, and some time at the cell.
func check(b *Brakes, from netip.Prefix, lane string, at time.Duration, v tenancy.Verdict) error {
	leave, err := b.Enter(context.Background(), from, lane)
	if err != nil {
		return err
	}
	time.Sleep(at)
	leave(v)
	return nil
}

const cellTime = 5 * time.Millisecond

// flood sends bad tokens from an address, so many a second, until told to stop,
// and counts those that reach the cell.
func flood(b *Brakes, from func(i int) netip.Prefix, lane func(i int) string, perSecond int, d time.Duration) (checked int64) {
	var n atomic.Int64
	var wg sync.WaitGroup
	for i := range int(d.Seconds() * float64(perSecond)) {
		wg.Go(func() {
			if check(b, from(i), lane(i), cellTime, tenancy.Refused) == nil {
				n.Add(1)
			}
		})
		time.Sleep(time.Second / time.Duration(perSecond))
	}
	checked = n.Load()
	wg.Wait()
	return checked
}

func always[T any](v T) func(int) T { return func(int) T { return v } }

// 200 bad tokens a second from one address: fewer than 5 a second reach the
// cell, in 30 s.
func TestFloodFromOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		n := flood(b, always(address(1)), always(""), 200, 30*time.Second)
		if n < 16+58 || n > 16+60 {
			t.Errorf("%d checks in 30 s", n)
		}
		counts := b.Counts()
		if c := counts[Address]; c.TurnedAway < 5000 || c.Delayed < 50 || counts[Lane].Delayed+counts[Process].Delayed > 0 {
			t.Errorf("counts %+v", counts)
		}
	})
}

// An address that is not the flood's is not slowed, and those of the flood's
// address that are not refused pay nothing but the line.
func TestFloodAndOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		var wg sync.WaitGroup
		wg.Go(func() { flood(b, always(address(1)), always(""), 200, 20*time.Second) })
		time.Sleep(10 * time.Second)
		for i := range 100 {
			begin := time.Now()
			if err := check(b, address(2), "", cellTime, tenancy.Taken); err != nil || time.Since(begin) != cellTime {
				t.Errorf("check %d: %v after %v", i, err, time.Since(begin))
			}
		}
		wg.Wait()
	})
}

// Behind one address there may be hundreds of tenants: all log in at once, as
// fast as the cell answers.
func TestManyBehindOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		for range 2 {
			begin := time.Now()
			var wg sync.WaitGroup
			for i := range 500 {
				wg.Go(func() {
					if err := check(b, address(1), "", cellTime, tenancy.Taken); err != nil {
						t.Errorf("tenant %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			if d, want := time.Since(begin), (500+15)/16*cellTime; d != want {
				t.Errorf("500 tenants took %v, want %v", d, want)
			}
		}
	})
}

// What is under way counts: a slow cell is not asked about more than the burst at
// a time, nor about more refused ones than that in its own time.
func TestSlowCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		var now, most atomic.Int64
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() {
				leave, err := b.Enter(context.Background(), address(1), "")
				if err != nil {
					return
				}
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(8 * time.Second)
				now.Add(-1)
				leave(tenancy.Refused)
			})
		}
		wg.Wait()
		if most.Load() != 16 {
			t.Errorf("%d checks at one time, want 16", most.Load())
		}
	})
}

// Many addresses, each with few refusals, meet the brake of the lane; those that
// use many lanes as well meet that of the process. An address without refusals
// goes before those that have had some.
func TestFloodFromManyAddresses(t *testing.T) {
	for _, c := range []struct {
		at          Brake
		lane        func(int) string
		least, most int64
	}{
		{Lane, always("acme"), 128 + 16*19, 128 + 16*20},
		{Process, func(i int) string { return fmt.Sprint(i % 1000) }, 256 + 64*19, 256 + 64*20},
	} {
		t.Run(c.at.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(limits())
				var wg sync.WaitGroup
				var checked int64
				wg.Go(func() {
					checked = flood(b, func(i int) netip.Prefix { return address(i % 200) }, c.lane, 600, 20*time.Second)
				})
				time.Sleep(15 * time.Second)
				begin := time.Now()
				if err := check(b, address(1<<20), "acme", cellTime, tenancy.Taken); err != nil || time.Since(begin) > time.Second {
					t.Errorf("an address without refusals: %v after %v", err, time.Since(begin))
				}
				wg.Wait()
				if checked < c.least || checked > c.most {
					t.Errorf("%d checks in 20 s, want %d to %d", checked, c.least, c.most)
				}
			})
		})
	}
}

// Who waits does so no longer than it may, and leaves nothing behind.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		var held []func(tenancy.Verdict)
		for range 16 {
			leave, err := b.Enter(t.Context(), address(1), "")
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, leave)
		}
		begin := time.Now()
		if _, err := b.Enter(t.Context(), address(1), ""); !errors.Is(err, tenancy.ErrBraked) || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Enter(ctx, address(1), ""); !errors.Is(err, tenancy.ErrBraked) || time.Since(begin) != 11*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		for _, leave := range held {
			leave(tenancy.Taken)
		}
		for range 16 {
			if err := check(b, address(1), "", 0, tenancy.Taken); err != nil {
				t.Error(err)
			}
		}
		if br := b.addresses.known[address(1)]; !br.isForgettable(time.Now()) {
			t.Errorf("%d checks, %d waiting, %v tokens", br.checks, br.waiting(), br.refusals.Tokens())
		}
	})
}

// A cell that cannot be asked refuses nobody.
func TestUnsureIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		for range 1000 {
			if err := check(b, address(1), "", 0, tenancy.Unsure); err != nil {
				t.Fatal(err)
			}
		}
		if c := b.Counts(); c != [brakeCount]Count{} {
			t.Errorf("counts %+v", c)
		}
	})
}

// The book is bounded, and whoever was refused often does not get rid of that by
// coming from many other addresses.
func TestBookRemembersTheWorst(t *testing.T) {
	cfg := limits()
	cfg.Known = 8
	synctest.Test(t, func(t *testing.T) {
		b := New(cfg)
		for range 16 {
			if err := check(b, address(0), "", 0, tenancy.Refused); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			if err := check(b, address(1+i), fmt.Sprint(i), 0, tenancy.Refused); err != nil {
				t.Fatalf("address %d: %v", i, err)
			}
			if n, lanes := len(b.addresses.known), len(b.lanes.known); n > 8 || lanes > 8 {
				t.Fatalf("%d addresses, %d lanes", n, lanes)
			}
		}
		begin := time.Now()
		if err := check(b, address(0), "", 0, tenancy.Taken); err != nil || time.Since(begin) != 500*time.Millisecond {
			t.Errorf("the address that was refused most: %v after %v", err, time.Since(begin))
		}
		// Full of those that are being checked: nobody new.
		for i := range 8 {
			if _, err := b.Enter(t.Context(), address(200+i), ""); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Enter(t.Context(), address(300), ""); !errors.Is(err, tenancy.ErrBraked) {
			t.Errorf("a ninth: %v", err)
		}
	})
}

// Nothing is known of those of whom there is nothing to know.
func TestBookForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits())
		for i := range 10_000 {
			if err := check(b, address(i), fmt.Sprint(i), 0, tenancy.Taken); err != nil {
				t.Fatal(err)
			}
		}
		if n, lanes := len(b.addresses.known), len(b.lanes.known); n > 1 || lanes > 1 {
			t.Errorf("%d addresses, %d lanes are kept of 10,000 that were never refused", n, lanes)
		}
	})
}
