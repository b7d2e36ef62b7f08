package group

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/internal/scenario"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

// A scenario is a text file of commands, each a line that starts with "> ", and
// below each what the group did. "#" starts a comment.
//
//	> rules delay=3s min=6s max=5m members=100 bytes=1MB   (first, or not at all)
//	> join a [id=m1] [instance=i] [session=10s] [rebalance=1m] [type=consumer] [protocols=range,rr:meta] [v=4] [reattach]
//	> sync a m1 1 [instance=i] [m1=data m2=data] [type=t] [protocol=p]
//	> heartbeat m1 1 [instance=i]
//	> leave m1 /i m2/i
//	> commit 1 m1 [instance=i]
//	> gone a          nobody waits for a's answer any more
//	> wait 10s        time passes, from one deadline to the next
//	> late 10s        time passes and no timer runs
//	> move            the group goes to another coordinator
//	> delete
//	> describe
//
// Members are called m1, m2, … in the order of the joins without an id; requests
// by the name that their command gives.
func TestScenarios(t *testing.T) {
	scenario.Run(t, *update, func() scenario.Player { return newPlayer() })
}

// player is a group on a stage.
type player struct {
	rules rules
	st    *state
	start time.Time
	now   time.Time
	ids   int
	names map[uint64]string // of requests
	to    uint64
	was   string
	gone  bool // the group was retired
	out   *strings.Builder
}

func newPlayer() *player {
	p := &player{
		rules: rules{joinDelay: 3 * time.Second, minSession: 6 * time.Second, maxSession: 5 * time.Minute, maxMembers: 100, maxBytes: 1 << 20},
		start: time.Unix(1_800_000_000, 0), names: map[uint64]string{},
	}
	p.now = p.start
	p.st = newState(p.rules, p.now)
	p.was = p.phase()
	return p
}

func (p *player) phase() string { return fmt.Sprintf("%s %d", p.st.phase, p.st.generation) }

// Do does one command.
func (p *player) Do(verb string, a scenario.Args, out *strings.Builder) error {
	p.out = out
	if p.gone && verb != "wait" {
		p.st, p.gone = newState(p.rules, p.now), false
		p.was = p.phase()
	}
	switch verb {
	case "rules":
		p.rules.joinDelay, p.rules.minSession, p.rules.maxSession = a.Duration("delay", 3*time.Second), a.Duration("min", 6*time.Second), a.Duration("max", 5*time.Minute)
		p.rules.maxMembers, p.rules.maxBytes = a.Number("members", 100), a.Number("bytes", 1_000_000)
		p.st = newState(p.rules, p.now)
	case "join":
		ev := joinEvent{to: p.request(a.Words[0]), req: joinRequest(a)}
		if ev.req.MemberID == "" {
			p.ids++
			ev.newID = fmt.Sprintf("m%d", p.ids)
		}
		p.step(ev)
	case "sync":
		p.step(syncEvent{p.request(a.Words[0]), syncRequest(a)})
	case "heartbeat":
		p.step(heartbeatEvent{p.request("heartbeat"), int32(scenario.Number(a.Words[1])), a.Words[0], a.Text("instance", "")})
	case "commit":
		id := ""
		if len(a.Words) > 1 {
			id = a.Words[1]
		}
		p.step(commitEvent{p.request("commit"), int32(scenario.Number(a.Words[0])), id, a.Text("instance", "")})
	case "leave":
		var leavers []Leaver
		for _, w := range a.Words {
			id, instance, _ := strings.Cut(w, "/")
			leavers = append(leavers, Leaver{id, instance})
		}
		p.step(leaveEvent{p.request("leave"), leavers})
	case "gone":
		for to, name := range p.names {
			if name == a.Words[0] {
				delete(p.names, to)
				p.step(goneEvent{to})
			}
		}
	case "wait":
		p.wait(a.Words[0])
	case "late":
		p.now = p.now.Add(scenario.Duration(a.Words[0]))
	case "delete":
		p.step(deleteEvent{p.request("delete")})
	case "move":
		p.st = importState(p.rules, p.now, p.st.export(p.now))
		p.names = map[uint64]string{} // the requests are parked nowhere
		p.step(tickEvent{})
	case "describe":
		p.describe()
	default:
		return errors.New("no such command")
	}
	return nil
}

// request gives a request its number.
func (p *player) request(name string) uint64 {
	p.to++
	p.names[p.to] = name
	return p.to
}

func joinRequest(a scenario.Args) JoinRequest {
	req := JoinRequest{
		MemberID: a.Text("id", ""), InstanceID: a.Text("instance", ""), ClientID: a.Text("client", "c"), Host: "/h",
		Session: a.Duration("session", 10*time.Second), Rebalance: a.Duration("rebalance", time.Minute), ProtocolType: a.Text("type", "consumer"),
	}
	version := a.Number("v", 3)
	req.TellsID, req.Skips = version >= 4, version >= 9
	for _, w := range a.Words[1:] {
		req.Reattach = req.Reattach || w == "reattach"
	}
	for _, text := range strings.Split(a.Text("protocols", "range"), ",") {
		if name, metadata, _ := strings.Cut(text, ":"); name != "" {
			req.Protocols = append(req.Protocols, Protocol{name, subscription(metadata)})
		}
	}
	return req
}

// subscription is consumer metadata for topics joined by "+", with userdata
// after a "!".
func subscription(text string) []byte {
	text, userdata, _ := strings.Cut(text, "!")
	b := []byte{0, 1}
	var topics []string
	if text != "" {
		topics = strings.Split(text, "+")
	}
	b = append(b, 0, 0, 0, byte(len(topics)))
	for _, t := range topics {
		b = append(append(b, 0, byte(len(t))), t...)
	}
	return append(append(b, 0, 0, 0, byte(len(userdata))), userdata...)
}

func syncRequest(a scenario.Args) SyncRequest {
	req := SyncRequest{MemberID: a.Words[1], Generation: int32(scenario.Number(a.Words[2])), InstanceID: a.Text("instance", "")}
	req.ProtocolType, req.Protocol = a.Pointer("type"), a.Pointer("protocol")
	for _, e := range a.Pairs {
		if strings.HasPrefix(e[0], "m") {
			req.Assignments = append(req.Assignments, Assignment{e[0], []byte(e[1])})
		}
	}
	return req
}

// wait lets time pass from deadline to deadline.
func (p *player) wait(text string) {
	until := p.now.Add(scenario.Duration(text))
	for steps := 0; !p.gone; steps++ {
		if steps > 1000 {
			panic("the group never sleeps")
		}
		next := p.st.next()
		if next.IsZero() || next.After(until) {
			break
		}
		if next.After(p.now) {
			p.now = next
		}
		p.step(tickEvent{})
	}
	p.now = until
}

func (p *player) step(ev event) {
	at := ""
	if _, tick := ev.(tickEvent); tick {
		at = fmt.Sprintf("%8s ", p.now.Sub(p.start))
	}
	for _, e := range p.st.step(p.now, ev) {
		switch e := e.(type) {
		case reply:
			if name, ok := p.names[e.to]; ok {
				fmt.Fprintf(p.out, "%s%s: %s\n", at, name, show(e.with))
				delete(p.names, e.to)
			}
		case rebalanced:
			fmt.Fprintf(p.out, "%srebalance: %s\n", at, e.reason)
		case retire:
			fmt.Fprintf(p.out, "%sretired\n", at)
			p.gone = true
		}
	}
	if is := p.phase(); is != p.was {
		fmt.Fprintf(p.out, "%s-> %s\n", at, is)
		p.was = is
	}
}

func code(e *kerr.Error) string {
	if e == nil {
		return "0"
	}
	return fmt.Sprintf("%d %s", e.Code, e.Message)
}

func show(a answer) string {
	switch {
	case a.left != nil:
		var out []string
		for _, c := range a.left {
			out = append(out, code(c))
		}
		return strings.Join(out, ", ")
	case a.join.Code != nil:
		return fmt.Sprintf("%s member=%s generation=%d", code(a.join.Code), a.join.MemberID, a.join.Generation)
	case a.join.MemberID != "":
		return "joined " + showJoin(a.join)
	case a.sync.Code != nil:
		return code(a.sync.Code)
	case a.sync.Protocol != "":
		return fmt.Sprintf("assigned %q (%s, %s)", a.sync.Assignment, a.sync.ProtocolType, a.sync.Protocol)
	}
	return code(a.code)
}

func showJoin(j JoinAnswer) string {
	out := fmt.Sprintf("member=%s generation=%d leader=%s protocol=%s type=%s", j.MemberID, j.Generation, j.Leader, j.Protocol, j.ProtocolType)
	if j.SkipAssignment {
		out += " skip"
	}
	for _, m := range j.Members {
		topics, _ := topicsOf(m.Metadata)
		out += fmt.Sprintf(" [%s", m.ID)
		if m.InstanceID != "" {
			out += "/" + m.InstanceID
		}
		if len(topics) > 0 {
			out += " " + strings.Join(topics, "+")
		}
		out += "]"
	}
	return out
}

func (p *player) describe() {
	d := p.st.describe()
	fmt.Fprintf(p.out, "%s type=%q protocol=%q\n", d.State, d.ProtocolType, d.Protocol)
	for _, m := range d.Members {
		topics, _ := topicsOf(m.Metadata)
		fmt.Fprintf(p.out, "  %s instance=%q client=%q host=%q topics=%v assignment=%q\n", m.ID, m.InstanceID, m.ClientID, m.Host, topics, m.Assignment)
	}
	for _, q := range p.st.pending {
		fmt.Fprintf(p.out, "  pending %s\n", q.id)
	}
}
