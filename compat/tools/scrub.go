package main

import (
	"regexp"
	"slices"
	"strings"
)

// What differs from run to run, by what stands for it.
var changing = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "-<uuid>"},
	{regexp.MustCompile(`TopicId: [A-Za-z0-9_-]{22}`), "TopicId: <id>"},
	{regexp.MustCompile(` +\t`), "\t"}, // columns are as wide as what is in them
	{regexp.MustCompile(`\b[0-9]{14,19}\b`), "<id>"},
	{regexp.MustCompile(`\b[0-9]{13}\t[0-9]+\b`), "<time>\t<ms>"},
	{regexp.MustCompile(`\b[0-9]{13}\b`), "<time>"},
}

// frame is a line of a stack trace: it says how the tool is made.
var frame = regexp.MustCompile(`^\s+(at \S+\(.*\)|\.\.\. \d+ more)$`)

// scrub makes what a tool printed comparable: trailing blanks and empty lines go,
// stack traces are one line, and what changes has a placeholder. names are values
// by the name of what stands for them.
func scrub(said []string, names map[string]string) []string {
	var out []string
	for _, line := range said {
		line = strings.TrimRight(line, " \t")
		switch {
		case line == "":
			continue
		case frame.MatchString(line):
			line = "    at …"
			if len(out) > 0 && out[len(out)-1] == line {
				continue
			}
		case strings.HasPrefix(line, "#") || strings.HasPrefix(line, ">"):
			line = `\` + line // neither a remark nor a command
		}
		for _, name := range sortedByLength(names) {
			line = strings.ReplaceAll(line, names[name], "{"+name+"}")
		}
		for _, c := range changing {
			line = c.what.ReplaceAllString(line, c.with)
		}
		out = append(out, line)
	}
	return out
}

// sortedByLength puts the names of longer values first: a value may be a part of
// another.
func sortedByLength(names map[string]string) []string {
	var out []string
	for name := range names {
		out = append(out, name)
	}
	slices.SortFunc(out, func(a, b string) int {
		if d := len(names[b]) - len(names[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return out
}
