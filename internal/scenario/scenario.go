// Package scenario plays text files of commands against something under test,
// and holds what comes of each command to what is written below it. Tests use
// it, and nothing else.
//
// A command is a line that starts with "> "; the lines below it, up to the next
// command, an empty line or a comment, are what came of it. "#" starts a comment.
package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Player does commands. What came of one is written to out. It may panic over
// a command that cannot be understood.
type Player interface {
	Do(verb string, a Args, out *strings.Builder) error
}

// Run plays every file of testdata, each with a player of its own. With update
// the files are written anew.
func Run(t *testing.T, update bool, player func() Player) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Play(string(b), player())
			if err != nil {
				t.Fatal(err)
			}
			if update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(b) {
				t.Errorf("it does otherwise; look at the difference after -update:\n%s", got)
			}
		})
	}
}

// Play does the commands of a text and writes it anew.
func Play(text string, p Player) (string, error) {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		command, isCommand := strings.CutPrefix(line, "> ")
		if !isCommand && line != "" && !strings.HasPrefix(line, "#") {
			continue // an output
		}
		out.WriteString(line + "\n")
		if !isCommand {
			continue
		}
		if err := do(p, strings.Fields(command), &out); err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
	}
	return out.String(), nil
}

func do(p Player, words []string, out *strings.Builder) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return p.Do(words[0], ParseArgs(words[1:]), out)
}

// Args are a command's words: those with "=" by name, the others in order. A
// word that has a "/" before its "=" is one of the others.
type Args struct {
	Words []string
	Pairs [][2]string // name and value, in order
}

// ParseArgs sorts words.
func ParseArgs(words []string) Args {
	var a Args
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok && !strings.Contains(k, "/") {
			a.Pairs = append(a.Pairs, [2]string{k, v})
			continue
		}
		a.Words = append(a.Words, w)
	}
	return a
}

// Named is the last value of a name.
func (a Args) Named(name string) (value string, ok bool) {
	for _, p := range a.Pairs {
		if p[0] == name {
			value, ok = p[1], true
		}
	}
	return value, ok
}

// Text is the value of a name, or def.
func (a Args) Text(name, def string) string {
	if v, ok := a.Named(name); ok {
		return v
	}
	return def
}

// Pointer is the value of a name; nil where it is not named.
func (a Args) Pointer(name string) *string {
	if v, ok := a.Named(name); ok {
		return &v
	}
	return nil
}

// Number is the value of a name as a number, or def. It panics over another text.
func (a Args) Number(name string, def int) int {
	if v, ok := a.Named(name); ok {
		return Number(v)
	}
	return def
}

// Duration is the value of a name as a length of time, or def. It panics over
// another text.
func (a Args) Duration(name string, def time.Duration) time.Duration {
	if v, ok := a.Named(name); ok {
		return Duration(v)
	}
	return def
}

// Number reads a whole number, or panics.
func Number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// Duration reads a length of time, or panics.
func Duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}
