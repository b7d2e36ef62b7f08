// Package steps is what the commands that look for faults tell: one step after
// another, each with what was seen and, where it failed, what to do next; for
// people, and as JSON.
package steps

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is one step a command takes: its name, and the exit code of a run in
// which it is the first that failed. Names and codes are a promise to scripts.
type Kind struct {
	Name string
	Exit int
	Does string // for the documents
}

// Status is how a step ended.
type Status string

// The statuses. A warning fails nothing: what was seen works, and is likely not
// to for somebody, or not for long.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Finding is what one step came to.
type Finding struct {
	Status Status
	About  string // which of several it is about: a broker, a file, a name
	At     string // the step inside it that failed, where it has some
	Cause  string // of a failure or a warning, one of a fixed set
	Seen   string
	Next   string // what to do next
}

// Step is a finding and the step it belongs to, as JSON shows it.
type Step struct {
	Step   string `json:"step"`
	Status Status `json:"status"`
	About  string `json:"about,omitempty"`
	At     string `json:"at,omitempty"`
	Cause  string `json:"cause,omitempty"`
	Seen   string `json:"seen"`
	Next   string `json:"next,omitempty"`
}

// Report is a whole run. It is written by one goroutine.
type Report struct {
	Command    string `json:"command"`
	Target     string `json:"target"`
	OK         bool   `json:"ok"`
	FailedStep string `json:"failed_step,omitempty"` // the first one
	Cause      string `json:"cause,omitempty"`       // of the first failure
	ExitCode   int    `json:"exit_code"`
	Steps      []Step `json:"steps"`

	scrub func(string) string
	told  func(Step)
}

// New starts a report. Every text goes through scrub, which takes out what must
// not be shown; told, where there is one, hears of each step as it ends.
func New(command, target string, scrub func(string) string, told func(Step)) *Report {
	if scrub == nil {
		scrub = func(text string) string { return text }
	}
	if told == nil {
		told = func(Step) {}
	}
	return &Report{Command: command, Target: Clean(scrub(target)), OK: true, Steps: []Step{}, scrub: scrub, told: told}
}

// Add ends a step, and reports whether the run may go on.
func (r *Report) Add(k Kind, f Finding) bool {
	s := Step{
		Step: k.Name, Status: f.Status, About: Clean(r.scrub(f.About)), At: f.At, Cause: f.Cause,
		Seen: Clean(r.scrub(f.Seen)), Next: Clean(r.scrub(f.Next)),
	}
	r.Steps = append(r.Steps, s)
	if f.Status == Failed && r.OK {
		r.OK, r.FailedStep, r.Cause, r.ExitCode = false, k.Name, f.Cause, k.Exit
	}
	r.told(s)
	return f.Status != Failed
}

// Skip says why steps were not taken.
func (r *Report) Skip(why string, kinds ...Kind) {
	for _, k := range kinds {
		r.Add(k, Finding{Status: Skipped, Seen: why})
	}
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// PrintTo tells each step for people, as it ends.
func PrintTo(w io.Writer) func(Step) {
	return func(s Step) {
		seen := s.Seen
		if s.About != "" && !strings.HasPrefix(seen, s.About) {
			seen = s.About + ": " + seen
		}
		line(w, shout(s.Status), s.Step, seen)
		if s.Next != "" {
			line(w, "", "", "next: "+s.Next)
		}
	}
}

// line is a row of three columns; the first two are as wide as their longest
// word.
func line(w io.Writer, status, step, text string) {
	_, _ = fmt.Fprintf(w, "%-8s %-13s %s\n", status, step, text)
}

// Verdict writes the last line for people.
func (r *Report) Verdict(w io.Writer) error {
	verdict := "no fault found"
	if !r.OK {
		verdict = fmt.Sprintf("the step that fails is %s (%s)", r.FailedStep, r.Cause)
	}
	_, err := fmt.Fprintf(w, "%s %s: %s\n", r.Command, r.Target, verdict)
	return err
}

func shout(s Status) string {
	if s == Failed {
		return "FAILED"
	}
	return string(s)
}

// maxText bounds what is shown of a text that may be another's, in bytes.
const maxText = 600

// Clean makes text of others fit for a terminal: one line, no control
// characters, at most 600 bytes.
func Clean(text string) string {
	if len(text) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
}

// Exit is a command that has told what is wrong; main only has to end with its
// code.
type Exit struct{ Code int }

// Error is for callers that do not know the type.
func (e *Exit) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Usage is the exit code of a command line that cannot be understood.
const Usage = 2
