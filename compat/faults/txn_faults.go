package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
)

// commitRoute is the one call that writes a transaction.
const commitRoute = "/api/v1/transaction"

// APIs of which a request is held on its way to the gateway, and what the table
// calls these steps.
const (
	atProduce = "produce" // records are sent, the partition is in the transaction
	atOffsets = "offsets" // records are staged
	atEnd     = "end"     // records and offsets are staged
	atCommit  = "commit"  // the call to the cell is under way, the cell has not heard of it
	atAnswer  = "answer"  // the cell has done it
)

var heldAPI = map[string]int16{atProduce: produceKey, atOffsets: 28, atEnd: 26}

// strike is one thing that goes wrong at one step of a transaction: a row of the
// table.
type strike struct {
	fault string
	step  string
	kind  inject.Kind              // of the commit call, at atCommit and atAnswer
	act   func(*transacting) error // what happens meanwhile
	after func(*transacting) error // and once the client has gone on
	short bool                     // transactions have little time
	brief bool                     // in the short form as well
}

func (s strike) String() string { return s.fault + "@" + s.step }

// shortTimeout is the time of a transaction that is to run out of it.
const shortTimeout = 2 * time.Second

// strikes are the rows of the table.
func strikes() []strike {
	on := func(act func(*system) error) func(*transacting) error {
		return func(t *transacting) error { return act(t.s) }
	}
	return []strike{
		{fault: "lost-answer", step: atAnswer, kind: inject.CutAfter, brief: true},
		{fault: "truncated", step: atAnswer, kind: inject.Truncate},
		{fault: "cut-before", step: atCommit, kind: inject.CutBefore},
		{fault: "429", step: atCommit, kind: inject.Throttle},
		{fault: "503", step: atCommit, kind: inject.Refuse, brief: true},
		{fault: "gateway-kill", step: atProduce, act: on(killGateway)},
		{fault: "gateway-kill", step: atOffsets, act: on(killGateway)},
		{fault: "gateway-kill", step: atEnd, act: on(killGateway), brief: true},
		{fault: "gateway-kill", step: atCommit, kind: inject.CutBefore, act: on(killGateway)},
		{fault: "gateway-kill", step: atAnswer, kind: inject.Watch, act: on(killGateway), brief: true},
		{fault: "cell-term", step: atEnd, act: on(stopCell)},
		{fault: "cell-term", step: atCommit, kind: inject.CutBefore, act: on(stopCell)},
		{fault: "cell-kill", step: atCommit, kind: inject.CutBefore, act: on(killCell)},
		{fault: "cell-kill", step: atAnswer, kind: inject.CutAfter, act: on(killCell)},
		{fault: "conn-cut", step: atProduce, act: on(cutClients)},
		{fault: "conn-cut", step: atEnd, act: on(cutClients)},
		{fault: "conn-cut", step: atCommit, kind: inject.Delay, act: on(cutClients)},
		{fault: "conn-cut", step: atAnswer, kind: inject.Watch, act: on(cutClients)},
		{fault: "rebalance", step: atEnd, act: (*transacting).rebalance, after: (*transacting).settle, brief: true},
		{fault: "zombie", step: atEnd, act: (*transacting).usurp, after: (*transacting).fence, brief: true},
		{fault: "expiry", step: atEnd, act: (*transacting).outlive, short: true, brief: true},
	}
}

// pickStrikes are those named, separated by commas: a fault at all of its steps,
// or at one. All for "", or those of the short form.
func pickStrikes(names string, full bool) ([]strike, error) {
	all := strikes()
	if names == "" {
		return slices.DeleteFunc(all, func(s strike) bool { return !full && !s.brief }), nil
	}
	var picked []strike
	for name := range strings.SplitSeq(names, ",") {
		before := len(picked)
		for _, s := range all {
			if s.fault == name || s.String() == name {
				picked = append(picked, s)
			}
		}
		if len(picked) == before {
			return nil, fmt.Errorf("there is no fault %q; there are %v", name, all)
		}
	}
	return picked, nil
}

// install lays the fault before the next transaction. struck hears of it once it
// has struck.
func (s strike) install(t *transacting, struck func(error)) error {
	meanwhile := func() {
		var err error
		if s.act != nil {
			err = s.act(t)
		}
		struck(err)
	}
	if api, ok := heldAPI[s.step]; ok {
		t.s.lane.hold(api, meanwhile)
		return nil
	}
	return t.s.proxy.Add(inject.Rule{
		Kind: s.kind, Route: commitRoute, Count: 1, Name: inject.Kind(s.String()), Meanwhile: meanwhile,
	})
}
