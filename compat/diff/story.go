package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// story is a flow while it is written. Each API has the version that lies the
// same steps above its lowest one.
type story struct {
	flow
	suite *suite
	step  int16
}

func (s *suite) story(step int16, kind, name string, own map[string]string) story {
	return story{flow: flow{name: fmt.Sprintf("%s %d, %s", kind, step, name), own: own}, suite: s, step: step}
}

func (t *story) done() { t.suite.flows = append(t.suite.flows, t.flow) }

// version is an API's in this story.
func (t *story) version(key int16) int16 {
	row := t.suite.row(key)
	return min(row.Min+t.step, row.Max)
}

func (t *story) add(a act) { t.acts = append(t.acts, a) }

// ask adds a request that make makes, of the story's version.
func (t *story) ask(on int, label string, make func(m *memory) kmsg.Request) *act {
	t.add(act{label: label, on: on, ask: func(m *memory) kmsg.Request {
		req := make(m)
		req.SetVersion(t.version(req.Key()))
		return req
	}})
	return &t.acts[len(t.acts)-1]
}
