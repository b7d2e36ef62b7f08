package tenancy_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/queen-mq/queen-edge/tenancy"
)

type flown struct {
	v   int
	led bool
	err error
}

func TestFlightShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f tenancy.Flight[string, int]
		gate := make(chan struct{})
		calls := 0
		results := make(chan flown, 10)
		ask := func() {
			v, led, err := f.Do(t.Context(), "k", func(context.Context) (int, error) {
				calls++
				<-gate
				return 7, nil
			})
			results <- flown{v, led, err}
		}
		for range 10 {
			go ask()
		}
		synctest.Wait()
		close(gate)
		led := 0
		for range 10 {
			r := <-results
			if r.v != 7 || r.err != nil {
				t.Errorf("got %+v", r)
			}
			if r.led {
				led++
			}
		}
		if calls != 1 || led != 1 {
			t.Errorf("%d calls, %d leaders", calls, led)
		}
		if _, led, _ := f.Do(t.Context(), "k", func(context.Context) (int, error) { return 8, nil }); !led {
			t.Error("a finished call is still joined")
		}
	})
}

func TestFlightKeysAreApart(t *testing.T) {
	var f tenancy.Flight[int, int]
	v, _, _ := f.Do(t.Context(), 1, func(ctx context.Context) (int, error) {
		v, led, err := f.Do(ctx, 2, func(context.Context) (int, error) { return 2, nil })
		if !led {
			t.Error("one key joined another")
		}
		return v + 1, err
	})
	if v != 3 {
		t.Errorf("got %d", v)
	}
}

// The leader's client leaves: the others get their answer all the same.
func TestFlightLeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f tenancy.Flight[string, int]
		gate := make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		results := make(chan flown, 2)
		call := func(ctx context.Context) (int, error) {
			select {
			case <-gate:
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		go func() {
			v, led, err := f.Do(ctx, "k", call)
			results <- flown{v, led, err}
		}()
		synctest.Wait()
		go func() {
			v, led, err := f.Do(t.Context(), "k", call)
			results <- flown{v, led, err}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		close(gate)
		for range 2 {
			if r := <-results; r.v != 7 || r.err != nil {
				t.Errorf("got %+v", r)
			}
		}
	})
}

func TestFlightFollowersContextEndsItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f tenancy.Flight[string, int]
		gate := make(chan struct{})
		led := make(chan flown, 1)
		go func() {
			v, l, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { <-gate; return 7, nil })
			led <- flown{v, l, err}
		}()
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if _, l, err := f.Do(ctx, "k", nil); l || !errors.Is(err, context.Canceled) {
			t.Errorf("the follower got %v, led %v", err, l)
		}
		close(gate)
		if r := <-led; r.v != 7 || r.err != nil {
			t.Errorf("the leader got %+v", r)
		}
	})
}

func TestFlightLeaderPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f tenancy.Flight[string, int]
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if !panics(func() {
				_, _, _ = f.Do(t.Context(), "k", func(context.Context) (int, error) { <-gate; panic("x") })
			}) {
				t.Error("the leader's panic was swallowed")
			}
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				if _, led, err := f.Do(t.Context(), "k", nil); led || err == nil {
					t.Errorf("a follower got led %v, error %v", led, err)
				}
			})
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		if v, led, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { return 1, nil }); v != 1 || !led || err != nil {
			t.Errorf("afterwards: %d %v %v", v, led, err)
		}
	})
}

// What is wanted goes on as long as one of those who want it is there, whoever
// began it; then it ends, and who comes later has a call of its own.
func TestFlightEndsWithTheLastWhoWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f tenancy.Flight[string, int]
		calls := 0
		ended := make(chan int, 2)
		slow := make(chan struct{})
		call := func(ctx context.Context) (int, error) {
			calls++
			n := calls
			<-ctx.Done()
			ended <- n
			<-slow // it takes its time to end
			return 0, ctx.Err()
		}
		var callers sync.WaitGroup
		begin := func() (leave context.CancelFunc) {
			ctx, leave := context.WithCancel(t.Context())
			callers.Go(func() {
				if _, _, err := f.DoWanted(ctx, "k", call); !errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
			})
			synctest.Wait()
			return leave
		}
		leader, follower := begin(), begin()
		leader()
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatal("the call ended with its leader, and somebody waited")
		}
		follower()
		synctest.Wait()
		if len(ended) != 1 || <-ended != 1 {
			t.Fatal("the call went on for nobody")
		}
		late := begin() // the first has not come back yet
		if calls != 2 {
			t.Fatalf("%d calls, want 2", calls)
		}
		later := begin()
		if calls != 2 {
			t.Fatalf("%d calls for two who share one", calls)
		}
		close(slow)
		late()
		later()
		callers.Wait()
		if n, led, err := f.DoWanted(t.Context(), "k", func(context.Context) (int, error) { return 7, nil }); n != 7 || !led || err != nil {
			t.Errorf("afterwards: %d, %v, %v", n, led, err)
		}
	})
}
