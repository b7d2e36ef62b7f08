package api

import (
	"reflect"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Outcome is what became of a request, the worst of its parts.
type Outcome uint8

// Outcomes, from best to worst.
const (
	Answered    Outcome = iota // no error code, or acks=0 and done
	Refused                    // a code that the client brought about, or that its protocol knows every day
	Unavailable                // a code that says: the cell or this gateway could not, now
	Unanswered                 // no answer: the connection ends
	Outcomes                   // how many there are
)

// String is the outcome's label.
func (o Outcome) String() string {
	return [...]string{"ok", "refused", "unavailable", "closed", "none"}[min(o, Outcomes)]
}

// outcomeOf sorts one error code. Unavailable are those that a healthy cell and a
// gateway with room never cause: an operator may wake up for them.
func outcomeOf(code int16) Outcome {
	switch code {
	case 0:
		return Answered
	case kerr.UnknownServerError.Code, kerr.LeaderNotAvailable.Code, kerr.NotLeaderForPartition.Code, kerr.RequestTimedOut.Code,
		kerr.CoordinatorLoadInProgress.Code, kerr.CoordinatorNotAvailable.Code, kerr.NotCoordinator.Code, kerr.ThrottlingQuotaExceeded.Code:
		return Unavailable
	}
	return Refused
}

// lookedAt is how many entries of each list in an answer are looked at for their
// codes: an answer may have 200,000, and what counts them must cost nothing.
const lookedAt = 1000

// codePlan is where a response, or an entry of one, has its error codes. It is
// made once for each API; to follow it allocates nothing.
type codePlan struct {
	code  int // field; −1: none
	lists []listPlan
}

type listPlan struct {
	field int
	of    codePlan
}

// planOf finds the fields called ErrorCode, as kmsg names them in every response.
func planOf(t reflect.Type) (codePlan, bool) {
	plan, any := codePlan{code: -1}, false
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "ErrorCode" {
			plan.code, any = i, true
			continue
		}
		if f.Type.Kind() != reflect.Slice || f.Type.Elem().Kind() != reflect.Struct {
			continue
		}
		if of, ok := planOf(f.Type.Elem()); ok {
			plan.lists, any = append(plan.lists, listPlan{i, of}), true
		}
	}
	return plan, any
}

// worst is the worst outcome of all codes below v.
func (p *codePlan) worst(v reflect.Value) Outcome {
	worst := Answered
	if p.code >= 0 {
		worst = outcomeOf(int16(v.Field(p.code).Int()))
	}
	for i := range p.lists {
		list := v.Field(p.lists[i].field)
		for j := range min(list.Len(), lookedAt) {
			if worst == Unavailable {
				return worst
			}
			worst = max(worst, p.lists[i].of.worst(list.Index(j)))
		}
	}
	return worst
}

// outcome is what a response amounts to.
func (r *Row) outcome(resp kmsg.Response) Outcome {
	if _, none := resp.(noReply); none || r.codes == nil {
		return Answered
	}
	return r.codes.worst(reflect.ValueOf(resp).Elem())
}

// planned gives every row its plan.
func planned(table []Row) []Row {
	for i := range table {
		resp := table[i].newRequest().ResponseKind()
		if plan, ok := planOf(reflect.TypeOf(resp).Elem()); ok {
			table[i].codes = &plan
		}
	}
	return table
}

// served tells who counts of a request that has ended.
func (h *Handlers) served(r Request, o Outcome, answer int) {
	if h.cfg.Served != nil {
		h.cfg.Served(r, o, answer)
	}
	if r.Span != nil {
		r.Span.End(r, o, answer)
	}
}
