package topicconf

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Values are what a topic sets, by key, in canonical form. What is not there
// has its default.
type Values map[string]string

// Op is what a Change does, by Kafka's numbers (KIP-339).
type Op int8

// The operations. Append and Subtract are for lists only.
const (
	Set Op = iota
	Delete
	Append
	Subtract
)

// Change is one entry of a request. A nil Value unsets; Delete has none.
type Change struct {
	Name  string
	Op    Op
	Value *string
}

// Refusal is why a change is not made: a sentence for the client.
type Refusal struct {
	Text    string
	Request bool // the request is at fault, not a config: INVALID_REQUEST
}

func (r *Refusal) Error() string { return r.Text }

// Apply makes the changes in their order and returns the new values; v stays as
// it is. The first refused change refuses all (a *Refusal).
func (v Values) Apply(changes []Change) (Values, error) {
	next := maps.Clone(v)
	if next == nil {
		next = Values{}
	}
	for _, c := range changes {
		if err := next.apply(c); err != nil {
			return nil, err
		}
	}
	return next, nil
}

func (v Values) apply(c Change) error {
	if c.Op < Set || c.Op > Subtract {
		return &Refusal{Text: "Unknown operation on config " + quote(c.Name) + ".", Request: true}
	}
	key, ok := keyOf(c.Name)
	if !ok {
		return &Refusal{Text: "Unknown topic config " + quote(c.Name) + ". Accepted: " + names() + "."}
	}
	if c.Op == Append || c.Op == Subtract {
		return v.list(key, c)
	}
	if c.Op == Delete || c.Value == nil {
		delete(v, key.Name)
		return nil
	}
	return v.set(key, *c.Value)
}

func (v Values) set(key Key, value string) error {
	canonical, refusal := key.parse(value)
	if refusal != "" {
		return refused(key, value, refusal)
	}
	v[key.Name] = canonical
	return nil
}

func refused(key Key, value, why string) *Refusal {
	return &Refusal{Text: "Invalid value " + quote(value) + " for config " + key.Name + ": " + why + "."}
}

// list adds to or takes from a list as it is now.
func (v Values) list(key Key, c Change) error {
	if key.Type != List {
		return &Refusal{Text: "Config " + key.Name + " is not a list: nothing can be appended to it or subtracted from it."}
	}
	if c.Value == nil {
		return &Refusal{Text: "An append to config " + key.Name + ", or a subtraction from it, needs a value."}
	}
	value, refusal := key.parse(*c.Value)
	if refusal != "" {
		return refused(key, *c.Value, refusal)
	}
	now, set := v[key.Name]
	if !set {
		now = key.Default
	}
	items := policiesOf(now)
	for _, item := range policiesOf(value) {
		if c.Op == Append {
			items = with(items, item)
			continue
		}
		items = slices.DeleteFunc(items, func(have string) bool { return have == item })
	}
	return v.set(key, strings.Join(items, ","))
}

func with(list []string, item string) []string {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}

// Equal reports whether two topics are set alike.
func (v Values) Equal(other Values) bool { return maps.Equal(v, other) }

// Retention is how long the cell is to keep records, in seconds. given is false
// where nothing was said about it, which leaves the cell's own default: for
// good. A policy without delete keeps for good whatever is set.
func (v Values) Retention() (seconds int64, limited, given bool) {
	policy, policySet := v[CleanupPolicy]
	if policySet && !slices.Contains(policiesOf(policy), PolicyDelete) {
		return 0, false, true
	}
	ms, err := strconv.ParseInt(v[RetentionMs], 10, 64)
	if err != nil {
		return 0, false, false
	}
	return ms / 1000, ms > 0, true
}

// quoted characters of a client's text that a sentence repeats.
const maxQuoted = 64

// quote repeats a client's text in a sentence: bounded, and without anything
// that could paint a terminal or begin a line of its own.
func quote(text string) string {
	count := 0
	for i := range text {
		if count == maxQuoted {
			text = text[:i] + "…"
			break
		}
		count++
	}
	return "'" + strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text) + "'"
}
