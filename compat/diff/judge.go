package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// judge normalises differences, looks them up among the listed ones, and keeps
// count of everything.
type judge struct {
	docs     string
	rules    []countedRule
	listed   []countedEntry
	requests int
	all      []difference // that no rule took away
	open     []difference // of those: not listed
}

type countedRule struct {
	rule
	hits int
}

type countedEntry struct {
	entry
	hits int
}

func newJudge(docs string) *judge {
	j := &judge{docs: docs}
	for _, r := range rules() {
		j.rules = append(j.rules, countedRule{rule: r})
	}
	for _, e := range deliberate() {
		j.listed = append(j.listed, countedEntry{entry: e})
	}
	return j
}

// take judges the two answers to one request.
func (j *judge) take(w where, ours, theirs reply, a, b side) {
	j.requests++
	if ours.outcome != theirs.outcome || ours.outcome == garbled {
		j.see(difference{where: w, path: "outcome", ours: ours.text(), theirs: theirs.text()})
		return
	}
	if ours.outcome != answered {
		return
	}
	for _, d := range compare(w, flatten(ours.resp), flatten(theirs.resp)) {
		if !j.normal(d, a, b) {
			j.see(d)
		}
	}
}

// text is an outcome, with the codes of an answer: they are what matters where
// the other side did not answer.
func (r reply) text() string {
	switch {
	case r.outcome == garbled:
		return r.outcome + ": " + r.detail
	case r.outcome != answered || r.resp == nil:
		return r.outcome
	}
	f := flatten(r.resp)
	var codes []string
	for _, p := range f.paths {
		if isCode(p) && !slices.Contains(codes, f.values[p]) {
			codes = append(codes, f.values[p])
		}
	}
	return strings.TrimSpace(r.outcome + " " + strings.Join(codes, ","))
}

// isCode: error codes are what clients decide by. No rule touches them.
func isCode(path string) bool { return strings.HasSuffix(path, "ErrorCode") }

// normal reports whether a rule makes the two values equal.
func (j *judge) normal(d difference, a, b side) bool {
	if decisive(d.path) {
		return false
	}
	for i := range j.rules {
		r := &j.rules[i]
		if glob(r.API, d.where.api) && glob(r.Path, d.path) && r.Value(d.ours, a) == r.Value(d.theirs, b) {
			r.hits++
			return true
		}
	}
	return false
}

// see looks a difference up. More than one entry may list it: the first counts.
func (j *judge) see(d difference) {
	j.all = append(j.all, d)
	for i := range j.listed {
		if e := &j.listed[i]; e.matches(d) {
			e.hits++
			return
		}
	}
	j.open = append(j.open, d)
}

func (e entry) matches(d difference) bool {
	if !glob(e.API, d.where.api) || e.Case != "" && !glob(e.Case, d.where.name) {
		return false
	}
	if e.Also != "" && glob(e.Also, d.path) && !decisive(d.path) {
		return true
	}
	return glob(e.Path, d.path) && glob(e.Ours, d.ours) && glob(e.Theirs, d.theirs)
}

// decisive: what clients decide by is listed by its two values.
func decisive(path string) bool { return isCode(path) || path == "outcome" }

// glob matches a text with a pattern in which * stands for anything and |
// separates alternatives.
func glob(pattern, s string) bool {
	if !strings.ContainsAny(pattern, "*|") {
		return pattern == s
	}
	quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
	quoted = strings.ReplaceAll(quoted, `\|`, `|`)
	return regexp.MustCompile(`^(?s:` + quoted + `)$`).MatchString(s)
}

// report says what was found; true means that nothing is wrong.
func (j *judge) report(w io.Writer, o options) bool {
	passed, failed := 0, 0
	verdict := func(ok bool, format string, args ...any) {
		if ok {
			passed++
			return
		}
		failed++
		fmt.Fprintf(w, "diff: FAIL "+format+"\n", args...)
	}
	if o.verbose {
		for _, d := range j.all {
			fmt.Fprintf(w, "      %s: %s: ours %s, theirs %s\n", d.where, d.path, d.ours, d.theirs)
		}
	}
	for _, r := range j.rules {
		fmt.Fprintf(w, "diff: rule %5d hits  %s %s: %s\n", r.hits, r.API, r.Path, r.Why)
		verdict(r.hits > 0 || o.only != "", "rule %s %s is not used", r.API, r.Path)
	}
	for _, e := range j.listed {
		fmt.Fprintf(w, "diff: kind %5d times %s %s: ours %s, theirs %s (%s)\n", e.hits, e.API, e.Path, e.Ours, e.Theirs, e.Row)
		verdict(e.hits > 0 || o.only != "", "listed difference %s %s (%s) does not occur", e.API, e.Path, e.Row)
		verdict(hasRow(j.docs, e.Row), "docs/DEVIATIONS.md has no row %q", e.Row)
	}
	j.unexplained(w)
	verdict(len(j.open) == 0, "%d differences are not explained", len(j.open))
	verdict(j.requests > 0, "nothing was compared")
	fmt.Fprintf(w, "diff: kinds %s\n", j.kinds())
	fmt.Fprintf(w, "diff: requests=%d differences=%d listed=%d unexplained=%d\n", j.requests, len(j.all), len(j.all)-len(j.open), len(j.open))
	fmt.Fprintf(w, "%d passed, %d failed\n", passed, failed)
	return failed == 0
}

// kinds counts the differences by what they are about.
func (j *judge) kinds() string {
	var outcomes, codes, entries, orders, values int
	for _, d := range j.all {
		switch {
		case d.path == "outcome":
			outcomes++
		case isCode(d.path):
			codes++
		case d.ours == absent || d.theirs == absent:
			entries++
		case strings.HasSuffix(d.path, ".order"):
			orders++
		default:
			values++
		}
	}
	return fmt.Sprintf("outcome=%d code=%d entry=%d order=%d value=%d", outcomes, codes, entries, orders, values)
}

// ownTopic is a label of a topic that one script alone writes to.
var ownTopic = regexp.MustCompile(`\[` + targetPrefix + `[0-9]+]`)

// unexplained prints what is open, equal differences of several requests
// together.
func (j *judge) unexplained(w io.Writer) {
	type kind struct{ api, path, ours, theirs string }
	seen := map[kind][]where{}
	var order []kind
	for _, d := range j.open {
		k := kind{d.where.api, ownTopic.ReplaceAllString(d.path, "["+targetPrefix+"]"), d.ours, d.theirs}
		if seen[k] == nil {
			order = append(order, k)
		}
		seen[k] = append(seen[k], d.where)
	}
	for _, k := range order {
		at := seen[k]
		fmt.Fprintf(w, "diff: NOT LISTED %s %s\n", k.api, k.path)
		fmt.Fprintf(w, "        ours   %s\n        theirs %s\n", k.ours, k.theirs)
		for _, name := range namesOf(at) {
			fmt.Fprintf(w, "        in     %s\n", name)
		}
	}
}

// namesOf lists cases once, with their versions.
func namesOf(at []where) []string {
	var names []string
	versions := map[string][]string{}
	for _, w := range at {
		if versions[w.name] == nil {
			names = append(names, w.name)
		}
		versions[w.name] = append(versions[w.name], fmt.Sprintf("v%d", w.version))
	}
	for i, n := range names {
		names[i] = n + " (" + strings.Join(slices.Compact(versions[n]), " ") + ")"
	}
	return names
}

// hasRow reports whether a table of the page has a row that starts with text.
func hasRow(docs, text string) bool { return strings.Contains(docs, "\n| "+text+" |") }
