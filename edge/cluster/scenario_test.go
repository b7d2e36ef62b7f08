package cluster

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/internal/scenario"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

// A scenario is a node (id 1, incarnation 100, heartbeat 2s, TTL 10s) and its
// registry, as commands with what comes of each:
//
//	> wait 5s               time passes, with the calls that are due
//	> row 2 [inc=7] [key=3] another process writes a row (once more: renews it)
//	> drop 1                a row is gone
//	> down | up             the registry cannot be reached | can be again
//	> lose                  the next call is done, and its answer lost
//	> late 20s              time passes and no call is made
//	> look                  somebody must know how things stand
//	> forever               rows do not run out
//	> leave
//	> view
func TestScenarios(t *testing.T) {
	scenario.Run(t, *update, func() scenario.Player { return newPlayer() })
}

type player struct {
	st         *state
	start, now time.Time
	rows       map[int32]Row
	expires    map[int32]time.Time
	version    int64
	down, lose bool
	forever    bool // rows do not run out
	out        *strings.Builder
	v          *View
}

func newPlayer() *player {
	p := &player{start: time.Unix(1_800_000_000, 0), rows: map[int32]Row{}, expires: map[int32]time.Time{}}
	p.now = p.start
	p.st = newState(rules{"c", member(1, 100), 2 * time.Second, 10 * time.Second}, p.now)
	p.v = p.st.view()
	return p
}

func member(id int32, incarnation int64) Member {
	return Member{ID: id, Host: fmt.Sprint("n", id), Port: 9092, Incarnation: incarnation}
}

func (p *player) Do(verb string, a scenario.Args, out *strings.Builder) error {
	p.out = out
	switch verb {
	case "wait":
		p.wait(scenario.Duration(a.Words[0]))
	case "late":
		p.now = p.now.Add(scenario.Duration(a.Words[0]))
	case "row":
		id := scenario.Number(a.Words[0])
		m := member(int32(id), int64(a.Number("inc", 1)))
		p.write(int32(a.Number("key", id)), m)
	case "drop":
		delete(p.rows, int32(scenario.Number(a.Words[0])))
	case "down", "up":
		p.down = verb == "down"
	case "forever":
		p.forever = true
	case "lose":
		p.lose = true
	case "look":
		p.do(p.st.step(p.now, refresh{}))
	case "leave":
		p.do(p.st.step(p.now, leave{}))
	case "view":
		p.say("%s", p.show())
	default:
		return errors.New("no such command")
	}
	return nil
}

func (p *player) say(format string, args ...any) {
	fmt.Fprintf(p.out, "%gs %s\n", p.now.Sub(p.start).Seconds(), fmt.Sprintf(format, args...))
}

func (p *player) show() string {
	var ids []string
	for _, m := range p.v.Members {
		ids = append(ids, fmt.Sprint(m.ID))
	}
	what := "coordinates nothing"
	if p.v.Coordinates(p.now) {
		what = "coordinates"
	}
	return fmt.Sprintf("nodes %s, %s", strings.Join(ids, " "), what)
}

func (p *player) wait(d time.Duration) {
	end := p.now.Add(d)
	for p.st.phase != left && !p.st.next.After(end) {
		if p.st.next.After(p.now) {
			p.now = p.st.next
		}
		p.do(p.st.step(p.now, tick{}))
	}
	p.now = end
}

func (p *player) write(key int32, m Member) int64 {
	p.version += 10
	p.rows[key] = Row{Key: key, Member: m, Version: p.version}
	p.expires[key] = p.now.Add(10 * time.Second)
	return p.version
}

// exchange is the registry.
func (p *player) exchange(c Call) (a Answer) {
	for key, at := range p.expires {
		if !p.forever && !p.now.Before(at) {
			delete(p.rows, key)
		}
	}
	own := p.rows[1]
	switch {
	case !c.Put:
	case own.Version == c.Expect:
		a.Applied, a.Version = true, p.write(1, p.st.self)
	default:
		a.Version, a.Winner = own.Version, own.Member
	}
	for _, r := range p.rows {
		a.Rows = append(a.Rows, r)
	}
	return a
}

func (p *player) do(effects []effect) {
	for len(effects) > 0 {
		e := effects[0]
		effects = effects[1:]
		switch e := e.(type) {
		case ask:
			effects = append(effects, p.ask(e.call)...)
		case publish:
			before := p.show()
			if p.v = e.view; p.show() != before {
				p.say("%s", p.show())
			}
		case release:
			if e.all {
				p.say("lets all groups go")
			}
		case tell:
			p.say("says: %s (%s)", e.what, e.detail)
		case fatal:
			p.say("ends: %v", e.err)
			p.st.phase = left
			return
		}
	}
}

func (p *player) ask(c Call) []effect {
	if p.down {
		return p.st.step(p.now, failed{p.now, errors.New("refused")})
	}
	was := p.rows[1]
	a := p.exchange(c)
	if !a.Applied && c.Put || c.Put && c.Expect != was.Version {
		p.say("put expecting %d: applied %v", c.Expect, a.Applied)
	}
	if p.lose {
		p.lose = false
		return p.st.step(p.now, failed{p.now, errors.New("answer lost")})
	}
	return p.st.step(p.now, answered{p.now, a})
}
