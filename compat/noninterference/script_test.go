package noninterference

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// op is one thing a client does. x says with which of its names and how, v at
// which version; every number will do.
type op struct {
	name string
	run  func(c *client, x, v int)
}

// ordinary are the doings of a well-behaved client. Each sees to what it needs:
// a heartbeat has a member, a commit a topic.
func ordinary() []op {
	return slices.Concat(topicOps(), recordOps(), groupOps(), offsetOps(), txnOps(), otherOps())
}

// mode is what kind of a neighbour A is.
type mode struct {
	name string
	ops  []op // besides the ordinary ones
	once string
}

const wellBehaved = "well-behaved"

func modes() []mode {
	return []mode{
		{name: wellBehaved},
		{name: "hostile", ops: hostile()},
		{name: "throttled", once: throttled},
		{name: "revoked", once: revoked},
		{name: "over-quota", once: overQuota},
	}
}

// step is one line of a script.
type step struct {
	who  string
	op   string
	x, v int
}

const a, b = "A", "B"

// script is what two tenants do, one step after the other.
type script struct {
	mode  string
	steps []step
}

func (s script) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "mode %s\n", s.mode)
	for _, st := range s.steps {
		fmt.Fprintln(&out, st)
	}
	return out.String()
}

func (st step) String() string { return fmt.Sprintf("%s %s %d %d", st.who, st.op, st.x, st.v) }

// parse reads a script as String writes it.
func parse(text string) (s script, err error) {
	head, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if _, err := fmt.Sscanf(head, "mode %s", &s.mode); err != nil {
		return s, fmt.Errorf("%q: %w", head, err)
	}
	for line := range strings.Lines(rest) {
		var st step
		if _, err := fmt.Sscanf(line, "%s %s %d %d", &st.who, &st.op, &st.x, &st.v); err != nil {
			return s, fmt.Errorf("%q: %w", line, err)
		}
		s.steps = append(s.steps, st)
	}
	return s, nil
}

// length is how many steps a script is drawn with. Some are nothing, and are left
// out: a failing script shrinks to the steps that matter.
const length = 50

// scripts draws scripts. A mode that begins with an event has it in the first
// half.
func scripts() *rapid.Generator[script] {
	return rapid.Custom(func(t *rapid.T) script {
		m := rapid.SampledFrom(modes()).Draw(t, "mode")
		both := names(ordinary())
		neighbour := append(names(m.ops), names(m.ops)...)
		neighbour = append(neighbour, both...)
		s := script{mode: m.name, steps: rapid.SliceOfN(steps(both, neighbour), length, length).Draw(t, "steps")}
		s.steps = slices.DeleteFunc(s.steps, func(st step) bool { return st == step{} })
		if m.once != "" {
			at := rapid.IntRange(0, len(s.steps)/2).Draw(t, "event")
			s.steps = slices.Insert(s.steps, at, step{who: a, op: m.once})
		}
		return s
	})
}

func steps(of, neighbour []string) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		st := step{who: rapid.SampledFrom([]string{"", b, b, a, a, a}).Draw(t, "who")}
		if st.who == "" {
			return step{}
		}
		ops := of
		if st.who == a {
			ops = neighbour
		}
		st.op = rapid.SampledFrom(ops).Draw(t, "op")
		st.x, st.v = rapid.IntRange(0, 23).Draw(t, "x"), rapid.IntRange(0, 19).Draw(t, "v")
		return st
	})
}

func names(ops []op) (out []string) {
	for _, o := range ops {
		out = append(out, o.name)
	}
	return out
}
