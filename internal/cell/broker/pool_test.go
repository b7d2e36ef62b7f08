package broker

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/queen-mq/queen-edge/internal/cell/store"
)

// TestAbandonedPushKeepsItsBytes gives up pushes that wait for the writer, and
// pushes others of the same size behind them: each is stored as it was given,
// though the memory of pushes is used again.
func TestAbandonedPushKeepsItsBytes(t *testing.T) {
	b := open(t, Config{})
	item := func(c byte) []PushItem {
		payload := append(append([]byte{'"'}, bytes.Repeat([]byte{c}, 500)...), '"')
		return []PushItem{{Queue: "q", Partition: string(c), Payload: payload}}
	}
	wait := func(n int) {
		for b.store.Waiting() < n {
			runtime.Gosched()
		}
	}
	for range 20 { // the pool may drop what it is given
		mustPush(t, b, tenantA, item('w'))
		gate, held := make(chan struct{}), make(chan struct{})
		over := make(chan error, 1)
		go func() {
			over <- b.store.Do(context.Background(), &store.Command{Plan: func(*store.Draft) error {
				close(held)
				<-gate
				return nil
			}})
		}()
		<-held
		ctx, cancel := context.WithCancel(context.Background())
		gone, kept := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := b.Push(ctx, tenantA, item('a'), nil)
			gone <- err
		}()
		wait(1)
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatalf("given up: %v", err)
		}
		go func() {
			_, err := b.Push(context.Background(), tenantA, item('b'), nil)
			kept <- err
		}()
		wait(2)
		close(gate)
		if err := errors.Join(<-over, <-kept); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []byte("wab") {
		got := fetchOne(t, b, tenantA, FetchEntry{Queue: "q", Partition: string(c)})
		if len(got.Records) != 20 {
			t.Errorf("%c: %d records", c, len(got.Records))
		}
		for _, r := range got.Records {
			if want := item(c)[0].Payload; !bytes.Equal(r.Payload, want) {
				t.Fatalf("%c: offset %d is %.20s", c, r.Offset, r.Payload)
			}
		}
	}
}
