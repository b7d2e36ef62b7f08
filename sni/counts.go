package sni

import "sync/atomic"

// Counts is how many hellos came to what. The zero Counts is ready for use, by
// any number of goroutines.
type Counts struct {
	hellos [kinds][answers]atomic.Int64
}

// Add counts a hello.
func (c *Counts) Add(h Hello) { c.hellos[h.Kind][h.Answer].Add(1) }

// Each tells every combination that can be, those without a hello included.
func (c *Counts) Each(tell func(k Kind, a Answer, n int64)) {
	for k := range kinds {
		for a := range answers {
			// A name is unknown only to a list, and then it is not served.
			if possible := k != Unknown || a != Served; possible && (k != Known || a != ByDefault) {
				tell(k, a, c.hellos[k][a].Load())
			}
		}
	}
}
