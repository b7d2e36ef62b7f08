package cloud

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// scenario is one thing that is proved.
type scenario struct {
	number   int // of cell-http §9; 0: beyond it
	name     string
	keys     []string // of the rig
	cellOnly bool     // no gateway is asked
	cell     bool     // the cell is asked as well
	admin    bool     // limits are changed, or usage is read
	log      bool     // the log is read
	apis     []int16  // that it needs; one the gateway does not announce leaves it pending
	run      func(*testing.T, *system)
}

const scenarios = 16

// both tenants, with all rights.
func both() []string { return []string{rig.Acme, rig.Globex} }

// TestCloud is the proof. The long poll is sent first and read near the end; the
// storage cap is last, as its release takes as long as the cell needs.
func TestCloud(t *testing.T) {
	s := open(t)
	poll := sendPoll(t, s)
	list := slices.Concat(topicScenarios(), groupScenarios(), limitScenarios(), beyond(), []scenario{
		{number: 14, name: "a long poll of 30 s", keys: both()[:1], run: poll.scenario},
		storageScenario(),
	})
	results := &report{}
	for _, sc := range list {
		t.Run(sc.title(), func(t *testing.T) { results.follow(t, sc, s) })
	}
	results.print(t, list)
}

// title is a subtest's name: its number, or beyond.
func (sc *scenario) title() string {
	if sc.number == 0 {
		return "beyond " + sc.name
	}
	return fmt.Sprintf("%02d %s", sc.number, sc.name)
}

// missing says what a scenario lacks: a variable is a skip, an API of the
// gateway is still to come.
func (sc *scenario) missing(s *system) (skip, pending string) {
	var needs []string
	if !sc.cellOnly {
		needs = append(needs, varBootstrap, varCA)
	}
	if sc.cellOnly || sc.cell || sc.admin {
		needs = append(needs, varCellURL)
	}
	if sc.admin {
		needs = append(needs, varCellData)
	}
	for _, key := range sc.keys {
		needs = append(needs, tokenVar(key))
	}
	needs = slices.DeleteFunc(needs, func(name string) bool { return !slices.Contains(s.unset, name) })
	switch {
	case len(needs) > 0:
		return strings.Join(needs, ", ") + " not set", ""
	case sc.log && s.log == nil:
		return "the log of a system elsewhere cannot be read from here", ""
	}
	for _, api := range sc.apis {
		if _, ok := s.announced[api]; !ok {
			return "", "the gateway does not announce " + kmsg.NameForKey(api)
		}
	}
	return "", ""
}

// report is how the scenarios went.
type report struct {
	mu   sync.Mutex // guards rows
	rows map[string]string
}

// skipMark stands before the reason in a skipped test's row.
const (
	passed      = "passed"
	failed      = "FAILED"
	notRun      = "not run"
	skipMark    = "skipped: "
	pendingMark = "pending: "
)

func (r *report) set(title, result string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil {
		r.rows = map[string]string{}
	}
	r.rows[title] = result
}

// follow runs a scenario and keeps how it went.
func (r *report) follow(t *testing.T, sc scenario, s *system) {
	reason, pending := sc.missing(s)
	defer func() {
		switch {
		case t.Failed():
			r.set(sc.title(), failed)
		case pending != "":
			r.set(sc.title(), pendingMark+pending)
		case t.Skipped():
			r.set(sc.title(), skipMark+s.skipped)
		default:
			r.set(sc.title(), passed)
		}
	}()
	if pending != "" {
		t.Skip(pendingMark + pending)
	}
	if reason != "" {
		s.skip(t, reason)
	}
	sc.run(t, s)
}

// skip is loud: it says what is not proved.
func (s *system) skip(t *testing.T, reason string) {
	t.Helper()
	s.skipped = reason
	if os.Getenv("QE_REQUIRE") == "1" {
		t.Fatal("not proved: " + reason)
	}
	t.Skip("NOT PROVED: " + reason)
}

// print prints the table and its sum.
func (r *report) print(t *testing.T, list []scenario) {
	slices.SortStableFunc(list, func(a, b scenario) int {
		return cmp.Compare((a.number+scenarios)%(scenarios+1), (b.number+scenarios)%(scenarios+1))
	})
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	counts := map[string]int{}
	for _, sc := range list {
		result := cmp.Or(r.rows[sc.title()], notRun)
		kind, _, _ := strings.Cut(result, ":")
		if kind == passed && sc.number == 0 {
			kind = "beyond"
		}
		counts[kind]++
		fmt.Fprintf(table, "%s\t%s\n", sc.title(), result)
	}
	must(t, table.Flush())
	fmt.Fprintf(&out, "cloud: %d of %d, +%d beyond", counts[passed], scenarios, counts["beyond"])
	for _, kind := range []string{failed, "skipped", "pending", notRun} {
		if counts[kind] > 0 {
			fmt.Fprintf(&out, "; %d %s", counts[kind], kind)
		}
	}
	fmt.Println(out.String())
}
