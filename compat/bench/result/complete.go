package result

import (
	"fmt"
	"math"
	"slices"
)

// Missing says which numbers a run should have and has not: every workload of
// every peer in every round, with every value it wants.
func (r *Run) Missing() []string {
	var missing []string
	for _, w := range r.Workloads {
		for _, p := range r.Peers {
			if len(w.Wants[p.ID]) == 0 {
				continue
			}
			for round := 1; round <= r.Rounds; round++ {
				missing = append(missing, r.missing(w, p.ID, round)...)
			}
		}
	}
	return missing
}

func (r *Run) missing(w Workload, peer string, round int) []string {
	where := fmt.Sprintf("round %d, %s, %s", round, peer, w.ID)
	i := slices.IndexFunc(r.Samples, func(s Sample) bool { return s.Round == round && s.Peer == peer && s.Workload == w.ID })
	if i < 0 {
		return []string{where + ": not measured"}
	}
	var missing []string
	for _, name := range w.Wants[peer] {
		v, ok := r.Samples[i].Values[name]
		switch {
		case !ok:
			missing = append(missing, where+": no "+name)
		case math.IsNaN(v) || math.IsInf(v, 0) || v < 0:
			missing = append(missing, fmt.Sprintf("%s: %s is %v", where, name, v))
		}
	}
	return missing
}
