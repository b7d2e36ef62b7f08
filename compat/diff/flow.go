package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A flow is a story with several connections, in which each side gives ids of
// its own: members, producers. Its requests are made from what the side has said
// before, and its answers are compared with names in the place of ids.
type flow struct {
	name string
	own  map[string]string // what is called after the flow, by what stands for it
	acts []act
}

// act is one request of a flow, or what it waits for.
type act struct {
	label string
	on    int                                    // the connection
	ask   func(m *memory) kmsg.Request           // makes the request, its version included
	learn func(m *memory, resp kmsg.Response)    // takes ids from the answer
	trim  func(m *memory, resp kmsg.Response)    // takes out of the answer what is of other flows
	slow  bool                                   // one side may never answer
	parks bool                                   // the answer is left for a later act
	takes bool                                   // takes the answer that was left on the connection
	until func(m *memory, c *conn) (bool, error) // both sides come there before the flow goes on
	again int16                                  // a code that says "not yet": asked again for a while
}

// memory is what a side has said in a flow, and its connections.
type memory struct {
	side      side
	conns     map[int]*conn
	parked    map[int]sent
	own       map[string]string
	members   map[string]string // ids by name
	producers map[string]producer
}

type producer struct {
	id    int64
	epoch int16
}

// aside is the connection of questions that are not compared.
const aside = -1

// settled is how long a side may say "not yet".
const settled = 30 * time.Second

func newMemory(s side, own map[string]string) *memory {
	return &memory{side: s, own: own, conns: map[int]*conn{}, parked: map[int]sent{}, members: map[string]string{}, producers: map[string]producer{}}
}

func (m *memory) close() {
	for _, c := range m.conns {
		_ = c.Close()
	}
}

func (m *memory) conn(ctx context.Context, n int) (*conn, error) {
	if c := m.conns[n]; c != nil {
		return c, nil
	}
	c, err := m.side.dial(ctx)
	if err == nil {
		m.conns[n] = c
	}
	return c, err
}

// flow goes through a flow on both sides. What ends a connection of one of them
// ends the flow.
func (p pair) flow(ctx context.Context, f flow, j *judge) error {
	ours, theirs := newMemory(p.ours, f.own), newMemory(p.theirs, f.own)
	defer ours.close()
	defer theirs.close()
	for _, a := range f.acts {
		w, ra, err := ours.act(ctx, a)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", p.ours.name, a.label, err)
		}
		_, rb, err := theirs.act(ctx, a)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", p.theirs.name, a.label, err)
		}
		if a.parks || a.until != nil {
			continue
		}
		w.name = f.name + ": " + a.label
		j.take(w, ra, rb, p.ours, p.theirs)
		if ra.outcome != answered || rb.outcome != answered {
			return nil
		}
	}
	return nil
}

// act does one act on a side.
func (m *memory) act(ctx context.Context, a act) (where, reply, error) {
	if a.until != nil {
		c, err := m.conn(ctx, aside)
		if err != nil {
			return where{}, reply{}, err
		}
		return where{}, reply{}, m.wait(ctx, a, c)
	}
	c, err := m.conn(ctx, a.on)
	if err != nil {
		return where{}, reply{}, err
	}
	s, ok := m.parked[a.on], true
	if !a.takes {
		s, ok = c.send(step{req: a.ask(m), slow: a.slow})
	}
	w := where{api: kmsg.NameForKey(s.req.Key()), version: s.req.GetVersion()}
	switch {
	case !ok:
		return w, reply{outcome: closed}, nil
	case a.parks:
		m.parked[a.on] = s
		return w, reply{}, nil
	}
	r := c.receive(s)
	for deadline := time.Now().Add(settled); a.again != 0 && says(r.resp, a.again) && time.Now().Before(deadline); {
		r = c.exchange(step{req: a.ask(m)})
	}
	if r.outcome == answered {
		m.understand(a, r.resp)
	}
	return w, r, nil
}

// understand takes from an answer what is asked with later, and leaves what can
// be compared.
func (m *memory) understand(a act, resp kmsg.Response) {
	if a.learn != nil {
		a.learn(m, resp)
	}
	if a.trim != nil {
		a.trim(m, resp)
	}
	m.name(reflect.ValueOf(resp).Elem())
}

// name puts names in the place of the ids in an answer.
func (m *memory) name(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			m.name(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			m.name(v.Index(i))
		}
	case reflect.String:
		v.SetString(m.nameOf(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			if v.Type().Field(i).Name == "ProducerID" && field.Int() >= 0 {
				m.nameProducer(field)
				continue
			}
			if v.Type().Field(i).IsExported() && field.CanSet() {
				m.name(field)
			}
		}
	}
}

func (m *memory) nameOf(s string) string {
	for name, own := range m.own {
		if s == own {
			return name
		}
	}
	for name, id := range m.members {
		if id != "" && s == id {
			return "member " + name
		}
	}
	return s
}

// nameProducer puts a number that both sides have in the place of an id.
func (m *memory) nameProducer(id reflect.Value) {
	const known = 1_000_000
	for name, p := range m.producers {
		if p.id == id.Int() {
			id.SetInt(known + int64(name[0]))
			return
		}
	}
}

// says reports whether an answer holds a code.
func says(resp kmsg.Response, code int16) bool {
	f := flatten(resp)
	for _, path := range f.paths {
		if isCode(path) && f.values[path] == fmt.Sprint(code) {
			return true
		}
	}
	return false
}

func (m *memory) wait(ctx context.Context, a act, c *conn) error {
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	return eventually(ctx, "the flow goes on", func() error {
		ok, err := a.until(m, c)
		if err == nil && !ok {
			err = fmt.Errorf("not yet")
		}
		return err
	})
}
