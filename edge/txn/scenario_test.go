package txn

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/internal/scenario"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

// A scenario is a text file of commands, each a line that starts with "> ", and
// below each the calls that the stage made and its reply. "#" starts a comment.
//
//	> limits bytes=100 records=10 body=10000 partitions=3    (first, or not at all)
//	> init [as=100/0] [timeout=1m]
//	> add t/0 t/1
//	> stage t/0 0-4 [bytes=10] [noroom]
//	> group g [ops=64]
//	> offsets g in/0=5 in/1=7 [ops=64]
//	> commit, abort
//	> lose call, lose answer       of the next write
//	> other init, other delete     somebody else writes the row
//	> restart                      another process, which knows nothing
//	> move                         another process, which was given the stage
//	> close                        the connection ends
//	> wait 10s                     time passes, and then is looked at
//	> late 10s                     time passes, and nobody looks
//
// Requests are the current producer's, or as=<id>/<epoch>'s. Producer ids count
// from 100. A call is "write <expected version>", the row, and what is with it.
func TestScenarios(t *testing.T) {
	scenario.Run(t, *update, func() scenario.Player { return newPlayer() })
}

// player is a stage and its row.
type player struct {
	m   machine
	s   *Stage
	now time.Time
	was Phase

	me      Producer // as the last init gave it
	row     []byte
	version int64
	lose    string // "call" or "answer", of the next write
	tokens  int
	fresh   int64
	out     *strings.Builder
}

func newPlayer() *player {
	return &player{
		m: machine{limits: Limits{Bytes: 1000, Records: 100, Body: 1 << 20, Partitions: 100}}, s: newStage(),
		now: time.Unix(1_800_000_000, 0), me: Nobody(), fresh: 99,
	}
}

// pair is two numbers with something between.
func pair(text, between string) (a, b int) {
	left, right, _ := strings.Cut(text, between)
	return scenario.Number(left), scenario.Number(right)
}

func place(text string) TopicPartition {
	topic, index, _ := strings.Cut(text, "/")
	return TopicPartition{topic, int32(scenario.Number(index))}
}

// Do does one command.
func (p *player) Do(verb string, a scenario.Args, out *strings.Builder) error {
	p.out = out
	switch verb {
	case "limits":
		p.m.limits = Limits{Bytes: int64(a.Number("bytes", 1000)), Records: a.Number("records", 100), Body: int64(a.Number("body", 1<<20)), Partitions: a.Number("partitions", 100)}
	case "init", "add", "stage", "group", "offsets", "commit", "abort":
		p.request(verb, a)
	case "lose":
		p.lose = a.Words[0]
	case "other":
		return p.other(a.Words[0])
	case "restart":
		p.s = newStage()
	case "move":
		return p.move()
	case "close":
		p.play("closed", closed{})
	case "wait":
		p.now = p.now.Add(scenario.Duration(a.Words[0]))
		p.play("tick", tick{})
	case "late":
		p.now = p.now.Add(scenario.Duration(a.Words[0]))
	default:
		return errors.New("no such command")
	}
	return nil
}

// move gives the stage to another process, as a value that has been written down.
func (p *player) move() error {
	b, err := json.Marshal(p.s)
	if err != nil {
		return err
	}
	p.s = &Stage{}
	return json.Unmarshal(b, p.s)
}

// other is another process, which holds nothing of the stage.
func (p *player) other(what string) error {
	if what == "delete" {
		p.row, p.version = nil, 0
		return nil
	}
	row, err := ParseRow(p.row)
	if err != nil {
		return err
	}
	row.Epoch, row.State, row.Write, row.Previous = row.Epoch+1, RowAborted, "another's", nil
	p.row, p.version = row.Encode(), p.version+1
	return nil
}

func (p *player) request(verb string, a scenario.Args) {
	p.tokens++
	req := request{Producer: p.me, Token: fmt.Sprintf("w%d", p.tokens)}
	if as, ok := a.Named("as"); ok {
		id, epoch := pair(as, "/")
		req.Producer = Producer{int64(id), int16(epoch)}
	} else if verb == "init" {
		req.Producer = Nobody()
	}
	for i, w := range a.Words {
		if w == "noroom" {
			req.NoRoom = true
			a.Words = append(a.Words[:i:i], a.Words[i+1:]...)
		}
	}
	p.play(verb, p.event(verb, a, req))
}

func (p *player) event(verb string, a scenario.Args, req request) event {
	switch verb {
	case "init":
		p.fresh++
		return initProducer{request: req, Timeout: a.Duration("timeout", time.Minute), Fresh: p.fresh}
	case "add":
		ev := addPartitions{request: req}
		for _, w := range a.Words {
			ev.Partitions = append(ev.Partitions, place(w))
		}
		return ev
	case "stage":
		first, last := pair(a.Words[1], "-")
		return stageRecords{
			request: req, TopicPartition: place(a.Words[0]), First: int32(first), Last: int32(last), Sequenced: true,
			Chunk: Chunk{Items: []byte("," + a.Words[1]), Count: last - first + 1}, Bytes: int64(a.Number("bytes", 1)),
		}
	case "group":
		return addGroup{request: req, Group: scenarioGroup(a.Words[0]), Ops: a.Number("ops", 64)}
	case "offsets":
		ev := stageOffsets{request: req, Group: scenarioGroup(a.Words[0]), Ops: a.Number("ops", 64)}
		for _, w := range a.Words[1:] {
			where, offset, _ := strings.Cut(w, "=")
			tp := place(where)
			ev.Offsets = append(ev.Offsets, Offset{Group: ev.Group.ID, Topic: tp.Topic, Partition: tp.Index, Row: Put{Key: where, Value: []byte(offset)}})
		}
		return ev
	}
	return endTxn{request: req, Commit: verb == "commit"}
}

func scenarioGroup(id string) Group { return Group{ID: id, Index: Put{Key: id}} }

// play takes an event through its calls to the reply.
func (p *player) play(verb string, ev event) {
	for ev != nil {
		var next event
		for _, e := range p.m.step(p.s, p.now, ev) {
			switch e := e.(type) {
			case readRow:
				fmt.Fprintln(p.out, "read")
				next = rowRead{Value: p.row, Version: p.version}
			case writeRow:
				next = p.write(e)
			case reply:
				p.reply(verb, Reply(e))
			case forget:
				fmt.Fprintln(p.out, "forgotten")
				p.s = newStage()
			}
		}
		ev = next
	}
	if p.s.Phase != p.was {
		fmt.Fprintln(p.out, "->", p.s.Phase)
		p.was = p.s.Phase
	}
}

func (p *player) write(w writeRow) event {
	fmt.Fprintf(p.out, "write %d: %d/%d %s", w.Expect, w.Row.ProducerID, w.Row.Epoch, w.Row.State)
	if w.Row.Lost {
		fmt.Fprint(p.out, " lost")
	}
	if w.Bundle {
		b := p.s.bundle()
		for _, c := range b.Chunks {
			fmt.Fprintf(p.out, " %s", strings.TrimPrefix(string(c.Items), ","))
		}
		for _, put := range b.Puts {
			fmt.Fprintf(p.out, " %s=%s", put.Key, put.Value)
		}
	}
	fmt.Fprintln(p.out)
	lose := p.lose
	p.lose = ""
	switch {
	case lose == "call":
		return rowWritten{Err: errors.New("no answer")}
	case w.Expect != p.version:
		return rowWritten{Version: p.version, Value: p.row}
	}
	p.row, p.version = w.Row.Encode(), p.version+1
	if lose == "answer" {
		return rowWritten{Err: errors.New("no answer")}
	}
	return rowWritten{Applied: true, Version: p.version}
}

func (p *player) reply(verb string, r Reply) {
	fmt.Fprintf(p.out, "%s: %s", verb, outcomeWords[r.Outcome])
	if verb == "init" && r.Outcome == OK {
		p.me = r.Producer
		fmt.Fprintf(p.out, " %d/%d", r.Producer.ID, r.Producer.Epoch)
	}
	if r.Fit > 0 {
		fmt.Fprintf(p.out, " %d", r.Fit)
	}
	fmt.Fprintln(p.out)
}

var outcomeWords = map[Outcome]string{
	OK: "ok", Unavailable: "unavailable", Busy: "busy", NoRoom: "no room", TooMany: "too many", TooLarge: "too large",
	Unknown: "unknown", OtherID: "another's id", Fenced: "fenced", Ahead: "an epoch ahead", Invalid: "invalid",
	TimedOut: "timed out", Gone: "gone", OutOfOrder: "out of order", AlreadyThere: "already there",
}
