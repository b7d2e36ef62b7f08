package noninterference

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is found is printed as a script. Written to a file it runs again with
// -run TestScript -script FILE; in testdata it runs with every go test.
var scriptFile = flag.String("script", "", "run the script of this file")

// perWorld is how many scripts share a cell.
const perWorld = 100

// TestNonInterference draws scripts: 100, or 2,000 with QE_FULL=1.
func TestNonInterference(t *testing.T) {
	worlds, full := 1, os.Getenv("QE_FULL") == "1"
	if full {
		worlds = 20
	}
	must(t, flag.Set("rapid.checks", fmt.Sprint(perWorld)))
	must(t, flag.Set("rapid.nofailfile", "true"))
	must(t, flag.Set("rapid.shrinktime", "0s")) // scripts shrink by steps, see shrink
	counted, scripts := newTally(), 0
	for range worlds {
		w := newWorld(t)
		rapid.Check(t, func(rt *rapid.T) {
			scripts++
			w.check(rt, w.draw(rt), counted)
		})
	}
	counted.print(t, scripts, full)
}

// TestScript runs the scripts of testdata, or the one that was named.
func TestScript(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	must(t, err)
	if *scriptFile != "" {
		paths = []string{*scriptFile}
	}
	w := newWorld(t)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			must(t, err)
			s, err := parse(string(text))
			must(t, err)
			w.check(t, s, newTally())
		})
	}
}

func (w *world) draw(t *rapid.T) script { return scripts().Draw(t, "script") }

// failer is what rapid's tests and Go's have in common.
type failer interface {
	Fatalf(format string, args ...any)
}

// check runs a script with A and without, and wants B to be answered the same.
func (w *world) check(t failer, s script, counted *tally) {
	text := s.String()
	if again, ok := w.found[text]; ok {
		t.Fatalf("%s", again) // rapid looks at what fails more than once
	}
	found := w.compare(s, counted)
	if found == nil {
		return
	}
	if smaller := w.shrink(s); smaller.String() != s.String() {
		if again := w.compare(smaller, newTally()); again != nil {
			s, found = smaller, again
		}
	}
	w.found[text] = fmt.Sprintf("B is answered otherwise because A is there.\n%s\nscript:\n%s", found, s)
	t.Fatalf("%s", w.found[text])
}

// difference is the first line at which B's transcripts part.
type difference struct{ step, alone, with string }

func (d *difference) String() string {
	return fmt.Sprintf("step: %s\nalone:  %s\nwith A: %s", d.step, d.alone, d.with)
}

// compare runs a script with A and without; nil: B's transcripts are the same.
func (w *world) compare(s script, counted *tally) *difference {
	with := w.play(s, counted, true)
	without := w.play(s, newTally(), false)
	i := differs(with, without)
	if i < 0 {
		return nil
	}
	step := min(i, len(without)-1)
	for step > 0 && strings.HasPrefix(without[step], " ") {
		step--
	}
	return &difference{step: lineOf(without, step), alone: lineOf(without, i), with: lineOf(with, i)}
}

// shrinkTime bounds the search for a smaller script.
const shrinkTime = 2 * time.Minute

// shrink leaves steps out for as long as B is answered otherwise: many at once
// at first, then one by one.
func (w *world) shrink(s script) script {
	w.patience = time.Second // one that hangs, hangs
	defer func() { w.patience = patience }()
	until := time.Now().Add(shrinkTime)
	for size := len(s.steps) / 2; size > 0; size /= 2 {
		for at := len(s.steps) - size; at >= 0 && time.Now().Before(until); at -= size {
			less := script{mode: s.mode, steps: slices.Delete(slices.Clone(s.steps), at, at+size)}
			if w.compare(less, newTally()) != nil {
				s = less
			}
			at = min(at, len(s.steps))
		}
	}
	return s
}
