package proxy

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// configureBody is what a configure asks for (cell-http §3.2).
type configureBody struct {
	dec      jx.Decoder
	queue    string
	replace  bool      // options not named go back to their defaults
	settings []setting // in order: the last of a name counts
}

// maxSettings bounds the settings one body may name: each option twice over.
const maxSettings = 64

// configure creates a queue or changes one; its id survives.
func (p *Proxy) configure(c *call) *refusal {
	var in configureBody
	var held admission
	f := p.decodeInto(c, func(body []byte) (f *refusal) {
		// The proxy's own look at the body, which the broker's follows.
		if held, f = p.admitConfigure(c, body); f != nil {
			return f
		}
		return in.decode(body)
	})
	if f != nil {
		held.undo()
		return f
	}
	q, err := p.broker.Configure(p.ctx(c), c.tenant(), in.queue, in.change)
	if err != nil {
		held.undo()
		return p.failed(c, "configure", err)
	}
	a := p.newAnswer(c, http.StatusOK)
	defer p.release(a)
	a.RawStr(`{"configured":true,"queueId":`)
	a.Str(q.ID)
	a.RawStr(`,"partitionId":null,"queue":`)
	a.Str(q.Name)
	a.RawStr(`,"namespace":`)
	a.Str(q.Options.Namespace)
	a.RawStr(`,"task":`)
	a.Str(q.Options.Task)
	a.RawStr(`,"storage":"segments","options":`)
	a.options(&q.Options)
	a.RawStr(`}`)
	a.finish()
	return nil
}

// change applies the settings to what the queue has.
func (b *configureBody) change(o *broker.Options) error {
	initial := broker.DefaultOptions()
	if b.replace {
		*o = initial
	}
	for i := range b.settings {
		b.settings[i].apply(o, &initial)
	}
	return nil
}

// decode reads the body. The strings are copies: it keeps nothing of it.
func (b *configureBody) decode(body []byte) *refusal {
	if !utf8.Valid(body) {
		return badBody()
	}
	b.dec.ResetBytes(body)
	if b.dec.Next() != jx.Object {
		return notAnObject(&b.dec)
	}
	if f := b.members(b.member); f != nil {
		return f
	}
	if trailing(&b.dec) {
		return badBody()
	}
	if b.queue == "" {
		return badRequest("queue is required")
	}
	return nil
}

// members walks the object that is next.
func (b *configureBody) members(member func(key string) *refusal) *refusal {
	members, err := b.dec.ObjIter()
	if err != nil {
		return badBody()
	}
	for members.Next() {
		if f := member(string(members.Key())); f != nil {
			return f
		}
	}
	if members.Err() != nil {
		return badBody()
	}
	return nil
}

// member reads one member of the body.
func (b *configureBody) member(key string) *refusal {
	switch key {
	case "queue":
		name, ok, err := stringValue(&b.dec)
		if err != nil {
			return badBody()
		}
		if !ok {
			return badRequest("queue must be a string")
		}
		b.queue = name
		return nil
	case "mode":
		return b.mode()
	case "options":
		switch b.dec.Next() {
		case jx.Object:
			return b.members(b.option)
		case jx.Null:
			return skipValue(&b.dec)
		default:
			if f := skipValue(&b.dec); f != nil {
				return f
			}
			return badRequest("options must be an object")
		}
	default:
		return b.option(key)
	}
}

// mode reads how options not named are meant.
func (b *configureBody) mode() *refusal {
	raw, err := b.dec.Raw()
	if err != nil {
		return badBody()
	}
	switch string(raw) {
	case `null`, `"merge"`:
		b.replace = false
	case `"replace"`:
		b.replace = true
	default:
		return badRequest(fmt.Sprintf(`mode must be "merge" or "replace", got %s`, shorten(raw)))
	}
	return nil
}

// option reads one option, at either level; other keys are passed over.
func (b *configureBody) option(key string) *refusal {
	var kinds broker.Options
	kind := optionField(&kinds, key)
	if kind == nil {
		return skipValue(&b.dec)
	}
	if len(b.settings) == maxSettings {
		return badRequest("too many options")
	}
	s, f := readSetting(&b.dec, key, kind)
	b.settings = append(b.settings, s)
	return f
}

// shorten keeps an error text short whatever the client sent.
func shorten(raw []byte) string {
	const most = 64
	if len(raw) <= most {
		return string(raw)
	}
	cut := most
	for !utf8.RuneStart(raw[cut]) {
		cut--
	}
	return string(raw[:cut]) + "…"
}

// stringValue reads a string; ok is false, and the value skipped, for another.
func stringValue(d *jx.Decoder) (s string, ok bool, err error) {
	if d.Next() != jx.String {
		return "", false, d.Skip()
	}
	s, err = d.Str()
	return s, err == nil, err
}

// boolValue reads a boolean; ok is false, and the value skipped, for another.
func boolValue(d *jx.Decoder) (flag, ok bool, err error) {
	if d.Next() != jx.Bool {
		return false, false, d.Skip()
	}
	flag, err = d.Bool()
	return flag, err == nil, err
}

// skipValue passes over a value.
func skipValue(d *jx.Decoder) *refusal {
	if d.Skip() != nil {
		return badBody()
	}
	return nil
}
