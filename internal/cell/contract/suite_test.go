package contract

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// item is one thing an embedded cell must do (cell-http §9).
type item int

// The items of "Embedded cell must".
const (
	routes item = iota
	blockedRoutes
	isolation
	scopes
	caps
	buckets
	blocks
	kafkaRule
	offsets
	longPoll
	bounds
	keys
	transactions
	metering
	revocation
	queueIDs
	numItems
)

func (i item) String() string {
	return [numItems]string{
		"routes 3.1–3.10 and 2.6",
		"404 route_blocked for every other /api/ path",
		"key → cluster → isolation",
		"scopes",
		"16 MiB, batch and payload caps",
		"request and message buckets with Retry-After",
		"storage, monthly and status blocks that spare fetch, kv(qk:) and lists",
		"the Kafka KV rule on the body",
		"contiguous offsets from 0",
		"long poll ≤ 30 s with prompt wake-up",
		"bounds beside errors",
		"atomic KV with versions, TTL, byte-ordered prefix",
		"atomic transaction across records and KV",
		"metering rows per cluster",
		"key revocation for new calls",
		"stable queue ids",
	}[i]
}

// certainty is how sure the contract is of what a case asks.
type certainty string

// What the contract marks [inferred] and [unknown] is reported apart: the
// embedded cell has one answer to it, another cell may have another.
const (
	certain  certainty = ""
	inferred certainty = "inferred"
	unknown  certainty = "unknown"
)

// kase is one row of the contract.
type kase struct {
	section string
	name    string
	items   []item
	sure    certainty
	own     bool // needs clusters of its own, so the embedded cell
	run     func(*probe)
}

// cases is the contract, by section.
func cases() []kase {
	return slices.Concat(accessCases(), queueCases(), pushCases(), fetchCases(), kvCases(), txnCases(), gateCases(), planCases(), nativeCases())
}

// is makes the items of a case.
func is(items ...item) []item { return items }

// TestContract runs every case against the embedded cell.
func TestContract(t *testing.T) {
	cell := startEmbedded(t)
	s := runCases(t, cell)
	fmt.Print(s)
	for i := range numItems {
		if s.cases[i] == 0 {
			t.Errorf("no case is about %s", i)
		}
	}
}

// TestContractElsewhere runs what can be run against the cell the environment
// names.
func TestContractElsewhere(t *testing.T) {
	cell := external()
	if cell == nil {
		t.Skip("QUEEN_EDGE_CELL_URL is not set")
	}
	defer cell.client.CloseIdleConnections()
	fmt.Print(runCases(t, cell))
}

// score is how a run went.
type score struct {
	ran, passed, skipped int
	cases, failed        [numItems]int
	apart                []string // cases the contract is not sure of
}

// runCases runs the cases one after the other.
func runCases(t *testing.T, c *target) *score {
	t.Helper()
	s := new(score)
	for _, k := range cases() {
		t.Run(k.section+" "+k.name, func(t *testing.T) { s.note(t, c, k) })
	}
	return s
}

// note runs one case and keeps how it went.
func (s *score) note(t *testing.T, c *target, k kase) {
	if k.own && c.cell == nil {
		s.skipped++
		t.Skip("needs clusters of its own")
	}
	p := &probe{target: c, ctx: t.Context(), section: k.section}
	p.do(k.run)
	if p.skipped != "" {
		s.skipped++
		t.Skip(p.skipped)
	}
	s.ran++
	if k.sure != certain {
		verdict := "as expected"
		if len(p.errs) > 0 {
			verdict = "differs: " + strings.Join(p.errs, "; ")
		}
		s.apart = append(s.apart, fmt.Sprintf("%s %s [%s] %s", k.section, k.name, k.sure, verdict))
	}
	if len(p.errs) == 0 {
		s.passed++
	}
	for _, i := range k.items {
		s.cases[i]++
		if len(p.errs) > 0 {
			s.failed[i]++
		}
	}
	if k.sure != certain && c.cell == nil {
		t.Log(strings.Join(p.errs, "\n"))
		return
	}
	for _, e := range p.errs {
		t.Error(e)
	}
}

// String is the report.
func (s *score) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "contract: %d cases, %d passed, %d skipped\n", s.ran, s.passed, s.skipped)
	passing := 0
	for i := range numItems {
		mark := "pass"
		switch {
		case s.failed[i] > 0:
			mark = "FAIL"
		case s.cases[i] == 0:
			mark = "no case ran"
		default:
			passing++
		}
		fmt.Fprintf(&b, "contract: §9 %-72s %s (%d of %d cases)\n", i, mark, s.cases[i]-s.failed[i], s.cases[i])
	}
	for _, line := range s.apart {
		fmt.Fprintf(&b, "contract: not sure: %s\n", line)
	}
	fmt.Fprintf(&b, "contract: %d of %d items of \"embedded cell must\" pass\n", passing, int(numItems))
	return b.String()
}

// external is the cell the environment names; nil without one.
func external() *target {
	url := os.Getenv("QUEEN_EDGE_CELL_URL")
	if url == "" {
		return nil
	}
	c := newTarget(strings.TrimRight(url, "/"))
	for name, text := range map[string]string{
		acme:        os.Getenv("QUEEN_EDGE_TOKEN_ACME"),
		acme2:       os.Getenv("QUEEN_EDGE_TOKEN_ACME_2"),
		acmeConsume: os.Getenv("QUEEN_EDGE_TOKEN_ACME_CONSUME"),
		acmeProduce: os.Getenv("QUEEN_EDGE_TOKEN_ACME_PRODUCE"),
		acmeTxn:     os.Getenv("QUEEN_EDGE_TOKEN_ACME_TXN"),
		acmeNoRead:  os.Getenv("QUEEN_EDGE_TOKEN_ACME_NOREAD"),
		globex:      os.Getenv("QUEEN_EDGE_TOKEN_GLOBEX"),
	} {
		c.keys[name] = text
	}
	return c
}
