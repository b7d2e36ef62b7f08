package mainly

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A program is well where all it looked at was, and nothing went wrong; its
// deadline ends it.
func TestFinish(t *testing.T) {
	wrong := errors.New("wrong")
	for _, c := range []struct {
		ok   bool
		err  error
		want bool
	}{{true, nil, true}, {false, nil, false}, {true, wrong, false}, {false, wrong, false}} {
		if got := finish("test", 0, func(context.Context) (bool, error) { return c.ok, c.err }); got != c.want {
			t.Errorf("%v, %v: %v", c.ok, c.err, got)
		}
	}
	if finish("test", time.Millisecond, func(ctx context.Context) (bool, error) { <-ctx.Done(); return true, ctx.Err() }) {
		t.Error("the deadline did not end it")
	}
}
