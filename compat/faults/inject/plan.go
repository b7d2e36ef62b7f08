package inject

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is one thing that goes wrong with a call.
type Kind string

// The kinds.
const (
	Delay     Kind = "delay"      // the call is late
	CutBefore Kind = "cut-before" // the connection ends; the cell has heard nothing
	CutAfter  Kind = "cut-after"  // the cell has done it; its answer is lost with the connection
	Truncate  Kind = "truncated"  // the cell has done it; half of its answer arrives
	NoAnswer  Kind = "no-answer"  // the cell has done it; nothing arrives until the caller gives up
	Swallow   Kind = "swallowed"  // the cell has heard nothing; nothing arrives until the caller gives up
	Throttle  Kind = "429"        // with Retry-After; the cell has heard nothing
	Refuse    Kind = "503"        // the cell has heard nothing
	Late      Kind = "408"        // the cell has heard nothing
	Watch     Kind = "watch"      // nothing goes wrong: the cell has done it, and its answer arrives
)

// Kinds are all kinds.
func Kinds() []Kind {
	return []Kind{Delay, CutBefore, CutAfter, Truncate, NoAnswer, Swallow, Throttle, Refuse, Late, Watch}
}

// Rule says which calls a fault hits.
type Rule struct {
	Kind   Kind   `json:"fault"`
	Route  string `json:"route"`  // the beginning of the path; empty: every call
	Holds  string `json:"holds"`  // what the body must hold; empty: anything
	Skip   int    `json:"skip"`   // calls it matches that pass first
	Count  int    `json:"count"`  // hits, then the rule is over; 0: no end
	Chance int    `json:"chance"` // of 100 calls it hits so many, by the plan's seed; 0: every one

	WaitMS            int `json:"wait_ms"`     // Delay: how late
	RetryAfterSeconds int `json:"retry_after"` // Throttle; 0: 1

	// Name stands for the kind where it is counted and logged, when what goes wrong
	// is what Meanwhile does.
	Name Kind `json:"name"`

	// Meanwhile, in this process only, is called as the fault strikes: before the
	// cell hears of the call, or after its answer and before the caller's. It may
	// wait.
	Meanwhile func() `json:"-"`
}

// Plan is what a proxy does by itself.
type Plan struct {
	Seed  uint64 `json:"seed"`
	Rules []Rule `json:"rules"`
}

func (r *Rule) check() error {
	if !slices.Contains(Kinds(), r.Kind) {
		return fmt.Errorf("there is no fault %q", r.Kind)
	}
	if r.Skip < 0 || r.Count < 0 || r.Chance < 0 || r.Chance > 100 || r.WaitMS < 0 || r.RetryAfterSeconds < 0 {
		return fmt.Errorf("the rule of %s on %q has a number out of its range", r.Kind, r.Route)
	}
	return nil
}

func (r *Rule) name() Kind {
	if r.Name != "" {
		return r.Name
	}
	return r.Kind
}

func (r *Rule) meanwhile() {
	if r.Meanwhile != nil {
		r.Meanwhile()
	}
}

func (r *Rule) retryAfter() int { return max(r.RetryAfterSeconds, 1) }

func (r *Rule) wait() time.Duration { return time.Duration(r.WaitMS) * time.Millisecond }

func (r *Rule) on(path string) bool { return strings.HasPrefix(path, r.Route) }

func (r *Rule) matches(path string, body []byte) bool {
	return r.on(path) && (r.Holds == "" || bytes.Contains(body, []byte(r.Holds)))
}

// Steps of an Event.
const (
	beforeCell = "before the cell"
	afterCell  = "after the cell"
)

// Event is a fault that struck: a line of the log.
type Event struct {
	Time  time.Time `json:"time"`
	Fault Kind      `json:"fault"`
	Route string    `json:"route"`
	N     int       `json:"n"`    // which call of this route it was, from 1
	Step  string    `json:"step"` // where the call was
	Done  bool      `json:"done"` // the cell had done it
}
