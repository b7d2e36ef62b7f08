package group

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// So many ids may be told and not used; then the oldest is forgotten.
func TestToldIDsAreBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newState(worldRules(), now)
	join := func(to uint64, id string) answer {
		req := JoinRequest{
			MemberID: id, Session: worldSession, ProtocolType: consumerType, TellsID: true,
			Protocols: []Protocol{{Name: "range"}},
		}
		for _, e := range s.step(now, joinEvent{to, req, fmt.Sprint("m", to)}) {
			if r, ok := e.(reply); ok {
				return r.with
			}
		}
		return answer{} // it is parked
	}
	for to := range uint64(maxPending + 1) {
		join(to, "")
	}
	if len(s.pending) != maxPending {
		t.Errorf("%d ids are kept, want %d", len(s.pending), maxPending)
	}
	if got := code(join(maxPending+1, "m0").join.Code); !strings.HasPrefix(got, "25") {
		t.Errorf("the oldest of too many ids is answered %s, want 25", got)
	}
	for to, id := range []string{"m1", fmt.Sprint("m", maxPending)} {
		if got := code(join(uint64(maxPending+2+to), id).join.Code); got != "0" {
			t.Errorf("%s is answered %s", id, got)
		}
	}
}
