package result

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// example is a run of two rounds with figures that are easy to follow.
func example() *Run {
	move := []string{MBps, CPUPerGB + ".client"}
	run := &Run{
		Made: "2026-01-02T03:04:05Z", Rounds: 2, Minutes: 30, Machine: []Fact{{"processor", "2 cores"}}, Client: []string{"acks=all"},
		Peers: []Peer{
			{ID: subject, Title: "queen-edge", Settings: []string{"defaults"}},
			{ID: kafkaSync, Title: "Apache Kafka, sync", Settings: []string{"a=<b>"}},
		},
		Workloads: []Workload{
			{ID: base + producing, Title: "produce 1 KB", Wants: map[string][]string{subject: append(slices.Clone(move), CellPerK), kafkaSync: move}},
			{ID: base + consuming, Title: "consume 1 KB", Wants: map[string][]string{subject: move, kafkaSync: move}},
			{ID: singles, Title: "500 a second", Wants: map[string][]string{subject: {P99}, kafkaSync: {P99}}},
		},
	}
	add := func(round int, peer, workload string, values map[string]float64) {
		run.Samples = append(run.Samples, Sample{round, peer, workload, values})
	}
	for i := range 2 {
		round, more := i+1, float64(i)
		add(round, subject, base+producing, map[string]float64{MBps: 30 + more, CPUPerGB + ".client": 2, CellPerK: .5})
		add(round, kafkaSync, base+producing, map[string]float64{MBps: 50, CPUPerGB + ".client": 3})
		add(round, subject, base+consuming, map[string]float64{MBps: 40, CPUPerGB + ".client": 2})
		add(round, kafkaSync, base+consuming, map[string]float64{MBps: 100 + 20*more, CPUPerGB + ".client": 2})
		add(round, subject, singles, map[string]float64{P99: 6})
		add(round, kafkaSync, singles, map[string]float64{P99: 12})
	}
	return run
}

func TestSpreadAndRatio(t *testing.T) {
	run := example()
	if got, ok := run.Of(subject, base+producing, MBps); !ok || got != (Spread{30.5, 30, 31}) {
		t.Errorf("spread: %v %v", got, ok)
	}
	if _, ok := run.Of(kafkaSync, base+producing, CellPerK); ok {
		t.Error("a value that is not there has a spread")
	}
	// Round by round: 40/100 and 40/120, not 40/110.
	got, ok := run.Ratio(subject, kafkaSync, base+consuming, MBps)
	if !ok || short(got.Median) != "0.367" || short(got.Max) != "0.400" {
		t.Errorf("ratio: %v %v", got, ok)
	}
	if got := median([]float64{9, 1, 2}); got != 2 {
		t.Errorf("median: %v", got)
	}
}

func TestAims(t *testing.T) {
	want := map[string]string{
		"≥ 0.5× Apache Kafka SASL_SSL that syncs, stretch 0.8×": "", // two of them: below
		"≤ Apache Kafka that syncs":                             "reached",
		"≤ 5 ms":                                                "not reached",
		"≤ 40 KiB":                                              "",
		"≤ 2":                                                   "reached",
	}
	for _, a := range example().Aims() {
		if expected, ok := want[a.Aim]; ok && expected != "" && a.Reached != expected {
			t.Errorf("%s, %s: %q (%s), want %q", a.Measure, a.Aim, a.Reached, a.Value, expected)
		}
		switch {
		case strings.HasPrefix(a.Measure, "produce,") && a.Reached != "reached", // 0.61
			strings.HasPrefix(a.Measure, "consume,") && a.Reached != "not reached": // 0.37
			t.Errorf("%s: %q (%s)", a.Measure, a.Reached, a.Value)
		case strings.HasPrefix(a.Measure, "memory") && (a.Value != "not measured" || a.Reached != ""):
			t.Errorf("%s: %q (%s)", a.Measure, a.Reached, a.Value)
		}
	}
}

func TestMissing(t *testing.T) {
	if got := example().Missing(); len(got) != 0 {
		t.Errorf("a whole run lacks %q", got)
	}
	cases := map[string]struct {
		spoil func(*Run)
		want  string
	}{
		"a sample": {func(r *Run) { r.Samples = r.Samples[1:] }, "round 1, queen-edge, 1KB-none/produce: not measured"},
		"a number": {func(r *Run) { delete(r.Samples[0].Values, CellPerK) }, "no " + CellPerK},
		"negative": {func(r *Run) { r.Samples[0].Values[MBps] = -1 }, MBps + " is -1"},
		"a round":  {func(r *Run) { r.Rounds = 3 }, "round 3, kafka-ssl-sync, latency-500: not measured"},
	}
	for name, c := range cases {
		run := example()
		c.spoil(run)
		if got := run.Missing(); !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

var update = flag.Bool("update", false, "rewrite testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is different now (-update rewrites it):\n%s", path, got)
	}
}

func TestPage(t *testing.T) {
	text := "# Head\n" + pageBegin + "\nold\n" + pageEnd + "\n\n## Prose\n"
	page, err := Page(text, example())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "page.md", page)
	if again, err := Page(page, example()); err != nil || again != page {
		t.Errorf("made anew the page is another one: %v", err)
	}
	if _, err := Page("# Head\n", nil); err == nil {
		t.Error("a page without a place for figures is taken")
	}
}

func TestDrawing(t *testing.T) {
	svg := example().SVG()
	golden(t, "drawing.svg", svg)
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
	}
}

// What the project shows is what the kept run says.
func TestDocumentsAreOfTheResults(t *testing.T) {
	run, err := Read("../results.json")
	if err != nil {
		t.Fatal(err)
	}
	const docs = "../../../docs/"
	text, err := os.ReadFile(docs + "PERFORMANCE.md")
	if err != nil {
		t.Fatal(err)
	}
	if page, err := Page(string(text), run); err != nil || page != string(text) {
		t.Errorf("docs/PERFORMANCE.md is not of results.json: go run -C compat/bench . -page (%v)", err)
	}
	if run == nil {
		return
	}
	if missing := run.Missing(); len(missing) > 0 || run.Short {
		t.Errorf("results.json is not of a whole run: %q", missing)
	}
	if svg, err := os.ReadFile(docs + drawing); err != nil || string(svg) != run.SVG() {
		t.Errorf("docs/%s is not of results.json: go run -C compat/bench . -page (%v)", drawing, err)
	}
}
