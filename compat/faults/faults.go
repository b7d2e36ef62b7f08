package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
)

// pushRoute is the call that every fault strikes: it is the one that writes.
const pushRoute = "/api/v1/push"

// fault is one thing that goes wrong while a push is under way.
type fault struct {
	name string
	rule inject.Rule
	act  func(*system) error // what happens meanwhile, for those that are not the proxy's
	slow bool                // takes the gateway's whole patience with a cell
	more []inject.Rule       // strike as well, until all of the round is acknowledged
}

// faults are the columns of the table.
func faults() []fault {
	return []fault{
		{name: "delay", rule: inject.Rule{Kind: inject.Delay, WaitMS: 700}},
		{name: "cut-before", rule: inject.Rule{Kind: inject.CutBefore}},
		{name: "lost-answer", rule: inject.Rule{Kind: inject.CutAfter}},
		{name: "truncated", rule: inject.Rule{Kind: inject.Truncate}},
		{name: "429", rule: inject.Rule{Kind: inject.Throttle, RetryAfterSeconds: 1}},
		{name: "503", rule: inject.Rule{Kind: inject.Refuse}},
		{name: "408", rule: inject.Rule{Kind: inject.Late}},
		{name: "no-answer", rule: inject.Rule{Kind: inject.NoAnswer}, slow: true},
		{name: "swallowed", rule: inject.Rule{Kind: inject.Swallow}, slow: true},
		{name: "conn-cut", act: cutClients},
		{name: "move", act: moveClients},
		{name: "gateway-kill", act: killGateway},
		{name: "cell-term", act: stopCell},
		{name: "cell-kill", act: killCell},
		{name: "storm", act: cutClients, more: storm()},
	}
}

// storm strikes any call, logins and listings too: one of six or so.
func storm() []inject.Rule {
	return []inject.Rule{
		{Kind: inject.CutBefore, Chance: 3},
		{Kind: inject.CutAfter, Chance: 3},
		{Kind: inject.Truncate, Chance: 3},
		{Kind: inject.Throttle, Chance: 2, RetryAfterSeconds: 1},
		{Kind: inject.Refuse, Chance: 3},
		{Kind: inject.Late, Chance: 2},
		{Kind: inject.Delay, Chance: 3, WaitMS: 200},
	}
}

func faultNames(list []fault) (names []string) {
	for _, f := range list {
		names = append(names, f.name)
	}
	return names
}

// pickFaults are those named, separated by commas; all for "".
func pickFaults(names string) ([]fault, error) {
	all := faults()
	if names == "" {
		return all, nil
	}
	var picked []fault
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q; there are %s", name, strings.Join(faultNames(all), ", "))
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// ruleFor is the rule that strikes the next push. Where the fault is an act, it
// comes before the cell hears of the push in one round, and after it has done it
// in the next.
func (f fault) ruleFor(round int, meanwhile func()) inject.Rule {
	r := f.rule
	if f.act != nil {
		r.Kind = inject.Delay
		if round/2%2 == 1 {
			r.Kind = inject.Watch
		}
	}
	r.Name, r.Route, r.Count, r.Meanwhile = inject.Kind(f.name), pushRoute, 1, meanwhile
	return r
}

func cutClients(s *system) error {
	s.lane.cut()
	return nil
}

// moveClients leads them to the other gateway.
func moveClients(s *system) error {
	s.current = (s.current + 1) % gateways
	s.lane.point(s.at[s.current].Addr())
	s.lane.cut()
	return nil
}

func killGateway(s *system) error {
	s.gateways[s.current].kill()
	return s.startGateway(s.current)
}

func killCell(s *system) error {
	s.cell.kill()
	return s.startCell()
}

func stopCell(s *system) error {
	if err := s.cell.stop(); err != nil {
		return err
	}
	return s.startCell()
}
