package brake

import (
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// standing is what is remembered of an address when its refusals are long paid:
// it decides who goes first where many addresses wait at the brake of a lane or
// of the process.
type standing uint8

const (
	good    standing = iota // a token from there was taken of late
	unknown                 // nothing is known
	bad                     // a token from there was refused, and none taken
	standings
)

// goodFor is how long a taken token speaks for its address.
const goodFor = time.Hour

// record remembers addresses. Those that were refused and those that had a token
// taken do not share their room: strangers fill the former only.
type record struct {
	taken   *lru.Cache[netip.Prefix, time.Time]
	refused *lru.Cache[netip.Prefix, struct{}]
}

func newRecord(size int) record {
	return record{newCache[time.Time](size), newCache[struct{}](size)}
}

func newCache[V any](size int) *lru.Cache[netip.Prefix, V] {
	c, err := lru.New[netip.Prefix, V](max(size, 1))
	if err != nil { // only a size below 1 errs
		panic(err)
	}
	return c
}

func (r record) of(from netip.Prefix, now time.Time) standing {
	if at, ok := r.taken.Get(from); ok && now.Sub(at) < goodFor {
		return good
	}
	if r.refused.Contains(from) {
		return bad
	}
	return unknown
}
