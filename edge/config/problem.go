package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

// shownValue bounds how much of a bad value an error repeats.
const shownValue = 128

// Problem is one setting that stops the boot.
type Problem struct {
	Variable string // the environment variable
	Value    string // the value as it may be shown; empty where the variable is unset
	Reason   string // what is wrong with it
	Legal    string // the values it takes; empty where Reason says it
	Default  string // what unset means; empty where Reason says it
}

// Error is one line: variable, value, reason, legal values, default.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Variable)
	if p.Value != "" {
		b.WriteString("=" + p.Value)
	}
	b.WriteString(": " + p.Reason)
	if p.Legal != "" {
		b.WriteString("; legal: " + p.Legal)
	}
	if p.Default != "" {
		b.WriteString("; default: " + p.Default)
	}
	return b.String()
}

// Problems lists the problems of an error of this package, in the order of the
// variables.
func Problems(err error) []*Problem {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*Problem
		for _, e := range joined.Unwrap() {
			out = append(out, Problems(e)...)
		}
		return out
	}
	var p *Problem
	if errors.As(err, &p) {
		return []*Problem{p}
	}
	return nil
}

// show is how a value may be repeated to an operator: quoted, bounded, and
// hidden where it looks like a key pasted into the wrong variable.
func show(value string) string {
	if sasl.LooksLikeKey(value) {
		return tenancy.Redacted
	}
	if len(value) > shownValue {
		value = value[:shownValue] + "…"
	}
	return fmt.Sprintf("%q", value)
}
