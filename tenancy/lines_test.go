package tenancy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// However they come, go and are let in, they are asked in the order in which they
// came, but for those of a tenant behind one that was not let in.
func TestCeilingLinesKeepTheOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var lines ceilingLines
		var plain []*waiter // the same, as one list
		for range 300 {
			switch rng.IntN(4) {
			case 0, 1:
				w := &waiter{id: ID{text: fmt.Sprint(rng.IntN(8))}, n: rng.Int64N(4)}
				lines.add(w)
				plain = append(plain, w)
			case 2:
				if len(plain) == 0 {
					continue
				}
				i := rng.IntN(len(plain))
				if w := plain[i]; !lines.remove(w) || lines.remove(w) {
					t.Fatal("not in its line once")
				}
				plain = slices.Delete(plain, i, i+1)
			case 3:
				room := rng.Int64N(6)
				fits := func(left *int64, w *waiter) bool {
					if w.n > *left {
						return false
					}
					*left -= w.n
					return true
				}
				var want, got []*waiter
				held, left := map[ID]bool{}, room
				plain = slices.DeleteFunc(plain, func(w *waiter) bool {
					if held[w.id] || !fits(&left, w) {
						held[w.id] = true
						return false
					}
					want = append(want, w)
					return true
				})
				left = room
				lines.each(func(w *waiter) bool {
					if !fits(&left, w) {
						return false
					}
					got = append(got, w)
					return true
				})
				if !slices.Equal(got, want) {
					t.Fatalf("let in are %d, want %d others", len(got), len(want))
				}
			}
			for _, w := range plain {
				if !lines.has(w.id) {
					t.Fatal("a tenant that waits is not known")
				}
			}
			if len(lines.of) != len(lines.order) {
				t.Fatalf("%d lines, %d in order", len(lines.of), len(lines.order))
			}
		}
	}
}
