package result

import (
	"errors"
	"fmt"
	"html"
	"strings"
)

// What is between these lines of the page is made from a run, and nothing there
// is written by hand.
const (
	pageBegin = "<!-- figures: made by make bench from compat/bench/results.json -->"
	pageEnd   = "<!-- end of figures -->"
)

// drawing is where the page finds the drawing.
const drawing = "performance.svg"

// Page puts the figures of a run into the text of a page; nil says that there
// are none.
func Page(text string, r *Run) (string, error) {
	before, rest, ok := strings.Cut(text, pageBegin)
	_, after, ok2 := strings.Cut(rest, pageEnd)
	if !ok || !ok2 {
		return "", errors.New("the page has lost the lines between which its figures are")
	}
	return before + pageBegin + "\n\n" + r.markdown() + "\n" + pageEnd + after, nil
}

func (r *Run) markdown() string {
	if r == nil {
		return "No run has been kept yet: `make bench` writes one.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Run of %s: %d rounds, %.0f minutes. Medians, and in brackets what the rounds lay between; ratios are taken round by round.\n\n", r.Made, r.Rounds, r.Minutes)
	fmt.Fprintf(&b, "![Throughput of all peers](%s)\n\n## Aims\n\n", drawing)
	rows := [][]string{{"measure", "aim", "measured", ""}}
	for _, a := range r.Aims() {
		rows = append(rows, []string{a.Measure, a.Aim, a.Value, a.Reached})
	}
	b.WriteString(markdownTable(rows))
	b.WriteString("\n## Figures\n")
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n### %s\n\n%s", t.title, markdownTable(t.rows))
		if t.note != "" {
			fmt.Fprintf(&b, "\n%s\n", t.note)
		}
	}
	b.WriteString("\n## What was measured\n\n")
	for _, f := range r.Machine {
		fmt.Fprintf(&b, "* %s: %s\n", f.Name, f.Value)
	}
	settings(&b, "Client", r.Client)
	for _, p := range r.Peers {
		settings(&b, p.Title, p.Settings)
	}
	return b.String()
}

func settings(b *strings.Builder, title string, lines []string) {
	fmt.Fprintf(b, "\n**%s**\n\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "* %s\n", html.EscapeString(line))
	}
}

func markdownTable(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}
