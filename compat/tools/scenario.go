package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A scenario is a text file: remarks (#), commands (>), and below each command
// what it prints.

// command is one command of a scenario.
type command struct {
	before []string // remarks and empty lines
	text   string
	want   []string
	got    []string
}

type scenario struct {
	commands []command
	after    []string // remarks behind the last command
}

func parse(text string) (scenario, error) {
	var s scenario
	var before []string
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, ">"):
			s.commands = append(s.commands, command{before: before, text: strings.TrimSpace(line[1:])})
			before = nil
		case strings.HasPrefix(line, "#") || line == "":
			before = append(before, line)
		case len(s.commands) == 0 || len(before) > 0:
			return s, fmt.Errorf("line %d prints without a command", i+1)
		default:
			c := &s.commands[len(s.commands)-1]
			c.want = append(c.want, line)
		}
	}
	s.after = before
	return s, nil
}

// render is the scenario with what its commands printed this time.
func (s scenario) render() string {
	var b strings.Builder
	put := func(lines ...string) {
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
	}
	for _, c := range s.commands {
		put(c.before...)
		put("> " + c.text)
		put(c.got...)
	}
	put(s.after...)
	return b.String()
}

// judge says which commands printed something else, and counts.
func (s scenario) judge(name string, w io.Writer) (passed, failed int) {
	for _, c := range s.commands {
		if slices.Equal(c.got, c.want) {
			passed++
			continue
		}
		failed++
		fmt.Fprintf(w, "tools: FAIL %s: %s\n", name, c.text)
		for _, line := range c.want {
			fmt.Fprintf(w, "        - %s\n", line)
		}
		for _, line := range c.got {
			fmt.Fprintf(w, "        + %s\n", line)
		}
	}
	return passed, failed
}
