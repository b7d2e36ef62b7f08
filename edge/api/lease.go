package api

import (
	"context"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// lease is what one request holds of a ceiling on memory. The zero lease has no
// ceiling and always has room.
type lease struct {
	ceiling *tenancy.Ceiling
	scope   tenancy.Scope
	taken   int64
	base    int64 // of it, what cover does not count
}

// wait takes n more bytes, in the tenant's line, for at most d. More than a
// tenant could ever hold is cut to that.
func (l *lease) wait(ctx context.Context, n int64, d time.Duration) error {
	if l.ceiling == nil || n <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	took, err := l.ceiling.Wait(ctx, l.scope, n)
	l.taken += took
	return err
}

// cover makes the lease n bytes at least beside its base, without waiting: whoever holds some of
// the ceiling must not wait for more of it, or all would wait for each other.
func (l *lease) cover(n int64) bool {
	n += l.base
	if l.ceiling == nil || n <= l.taken {
		return true
	}
	for _, more := range []int64{max(n-l.taken, l.taken/2), n - l.taken} { // in steps where there is room
		if l.ceiling.Take(l.scope, more) {
			l.taken += more
			return true
		}
	}
	return false
}

// never reports whether n bytes are more than the tenant could ever have.
func (l *lease) never(n int64) bool { return l.ceiling != nil && n > l.ceiling.Most() }

// release gives everything back.
func (l *lease) release() {
	if l.taken > 0 {
		l.ceiling.Give(l.scope, l.taken)
		l.taken, l.base = 0, 0
	}
}
