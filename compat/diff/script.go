package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/api"
)

// step is one request.
type step struct {
	req  kmsg.Request                               // what the answer is decoded by; nil: it is not
	edit func(frame []byte) []byte                  // has the last word on the frame
	slow bool                                       // may go without an answer because the server forgot it
	mute bool                                       // may go without an answer at all (acks=0)
	anew bool                                       // goes over a new connection
	own  *int16                                     // its own version; nil: the script's
	then func(before kmsg.Response, r kmsg.Request) // makes the request from the answer to the step before, which is each side's own
}

func (s step) frame(id int32) []byte {
	var frame []byte
	if s.req != nil {
		frame = frameOf(s.req, id)
	}
	if s.edit != nil {
		frame = s.edit(frame)
	}
	return frame
}

// script is what one connection to each side says, step by step.
type script struct {
	where where
	steps []step
}

// suite collects the scripts.
type suite struct {
	scripts []script
	flows   []flow
	rows    []api.Row
	now     int64 // ms; the time of what is written
	targets int
	keyed   [2]int // partitions of producers' topics: without a window, with one
}

// add makes a script of one request or of several. Each gets the version.
func (s *suite) add(row api.Row, version int16, name string, steps ...step) {
	for _, st := range steps {
		switch {
		case st.own != nil:
			st.req.SetVersion(*st.own)
		case st.req != nil:
			st.req.SetVersion(version)
		}
	}
	s.scripts = append(s.scripts, script{where{row.Name, version, name}, steps})
}

// ask makes steps of requests.
func ask(reqs ...kmsg.Request) []step {
	steps := make([]step, len(reqs))
	for i, r := range reqs {
		steps[i].req = r
	}
	return steps
}

// row is the announced API of a key.
func (s *suite) row(key int16) api.Row {
	for _, r := range s.rows {
		if r.Key == key {
			return r
		}
	}
	panic(fmt.Sprintf("API %d is not announced", key))
}

// ends are the two versions at which everything is tried.
func ends(r api.Row) []int16 {
	if r.Min == r.Max {
		return []int16{r.Min}
	}
	return []int16{r.Min, r.Max}
}

// every is each announced version.
func every(r api.Row) []int16 {
	var out []int16
	for v := r.Min; v <= r.Max; v++ {
		out = append(out, v)
	}
	return out
}

// target is a partition that nothing else writes to. Its topic is made before
// the scripts run.
func (s *suite) target() (topic string, partition int32) {
	s.targets++
	return targetTopic((s.targets - 1) / 4), int32((s.targets - 1) % 4)
}

// targetAlone is a topic that nothing else writes to.
func (s *suite) targetAlone() string {
	s.targets = (s.targets + 3) / 4 * 4
	topic, _ := s.target()
	return topic
}

// producers is a partition that nothing else writes to, of a topic whose log
// knows resends for some time (window), or does not.
func (s *suite) producers(window bool) (topic string, partition int32) {
	kind := kindOf(window)
	s.keyed[kind]++
	return keyedTopic(kind, (s.keyed[kind]-1)/4), int32((s.keyed[kind] - 1) % 4)
}

func kindOf(window bool) int {
	if window {
		return 1
	}
	return 0
}

func keyedTopic(kind, n int) string { return fmt.Sprintf("keyed-%d-%03d", kind, n) }

// keyedWindow is what topics of a kind have, in seconds.
func keyedWindow(kind int) int { return kind * 900 }

const targetPrefix = "write-"

func targetTopic(n int) string { return fmt.Sprintf(targetPrefix+"%03d", n) }

// pair are the two sides.
type pair struct{ ours, theirs side }

func (p pair) runAll(ctx context.Context, only string, j *judge) error {
	s := newSuite()
	if err := p.prepare(ctx, s); err != nil {
		return err
	}
	for _, sc := range s.scripts {
		if !strings.Contains(sc.where.String(), only) {
			continue
		}
		if err := p.run(ctx, sc, j); err != nil {
			return err
		}
	}
	for _, f := range s.flows {
		if !strings.Contains(f.name, only) {
			continue
		}
		if err := p.flow(ctx, f, j); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// run goes through a script on a connection to each side. What ends one of them
// ends the script.
func (p pair) run(ctx context.Context, sc script, j *judge) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a, err := p.ours.dial(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := p.theirs.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	var ra, rb reply
	for i, st := range sc.steps {
		if st.anew {
			if err := errors.Join(a.anew(ctx, p.ours), b.anew(ctx, p.theirs)); err != nil {
				return err
			}
		}
		w := sc.where
		if len(sc.steps) > 1 {
			w.name = fmt.Sprintf("%s, %d", w.name, i+1)
		}
		ra, rb = a.exchangeAfter(ra, st), b.exchangeAfter(rb, st)
		j.take(w, ra, rb, p.ours, p.theirs)
		if ra.outcome == closed || rb.outcome == closed || st.slow && ra.outcome != rb.outcome {
			return nil
		}
	}
	// Whether the connection lives on after the last answer is compared, too.
	after := sc.where
	after.name += ", then"
	j.take(after, a.alive(), b.alive(), p.ours, p.theirs)
	return nil
}

// anew is the connection, ended and dialled again.
func (c *conn) anew(ctx context.Context, s side) error {
	_ = c.Close()
	again, err := s.dial(ctx)
	if err == nil {
		c.Conn = again.Conn
	}
	return err
}

func (c *conn) exchangeAfter(before reply, st step) reply {
	if st.then != nil && before.resp != nil {
		st.then(before.resp, st.req)
	}
	return c.exchange(st)
}

// alive is a ping without what it answers.
func (c *conn) alive() reply {
	r := c.exchange(step{req: kmsg.NewPtrApiVersionsRequest()})
	r.resp = nil
	return r
}

// raw makes a frame by hand: header, client id (nil is null), tags of the
// header (nil: it has none), body.
func raw(key, version int16, id int32, clientID, tags, body []byte) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 4), uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	n := len(clientID)
	if clientID == nil {
		n = -1
	}
	b = binary.BigEndian.AppendUint16(b, uint16(int16(n)))
	b = append(append(append(b, clientID...), tags...), body...)
	return sized(b)
}

// instead sends other bytes than the request's own.
func instead(frame []byte) func([]byte) []byte {
	return func([]byte) []byte { return frame }
}

// body sends a body by hand under the request's header.
func body(b ...byte) func([]byte) []byte {
	return func(frame []byte) []byte {
		key, version := int16(binary.BigEndian.Uint16(frame[4:])), int16(binary.BigEndian.Uint16(frame[6:]))
		req := kmsg.RequestForKey(key)
		req.SetVersion(version)
		var tags []byte
		if req.IsFlexible() {
			tags = []byte{0}
		}
		return raw(key, version, int32(binary.BigEndian.Uint32(frame[8:])), []byte("diff"), tags, b)
	}
}

// more appends bytes to a frame.
func more(b ...byte) func([]byte) []byte {
	return func(frame []byte) []byte { return sized(append(frame, b...)) }
}

// less takes bytes off a frame's end.
func less(n int) func([]byte) []byte {
	return func(frame []byte) []byte { return sized(frame[:len(frame)-n]) }
}
