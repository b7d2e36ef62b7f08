package spare

import (
	"runtime"
	"testing"
)

// TestFewOutliveTheCollector: small values stay, and nobody gets one twice.
func TestFewOutliveTheCollector(t *testing.T) {
	var l List[[]byte]
	given := map[*[]byte]bool{}
	for range kept + 3 {
		given[l.Take()] = true
	}
	large := new([]byte)
	l.Put(large, keptBytes+1)
	for v := range given {
		l.Put(v, keptBytes/kept)
	}
	for range 3 {
		runtime.GC()
	}
	again := map[*[]byte]bool{}
	for i := range kept + 3 {
		v := l.Take()
		if again[v] {
			t.Fatal("a value was lent twice")
		}
		again[v] = true
		if i < kept && !given[v] {
			t.Errorf("of %d values that should stay, %d did", kept, i)
		}
	}
	if again[large] {
		t.Error("a large value stayed")
	}
}
