package cell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell/proxy"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err) // a typing error in this file
	}
	return t
}

// TestUsageFiles: rows go on after a restart, and a line that a crash cut short
// costs itself only.
func TestUsageFiles(t *testing.T) {
	u := usageFiles{dir: filepath.Join(t.TempDir(), "usage")}
	row := proxy.UsageRow{Cluster: "c", Minute: at("2026-10-02T09:01:00Z"), Class: proxy.OpPush, Msgs: 2, Reqs: 1, BytesIn: 10, BytesOut: 20}
	for range 2 {
		if err := u.Append([]proxy.UsageRow{row}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(u.dir, "2026-10.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.TrimSuffix(string(text), "20}\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := u.Append([]proxy.UsageRow{row}); err != nil {
		t.Fatal(err)
	}
	var rows []proxy.UsageRow
	if err := u.each("2026-10", func(r *proxy.UsageRow) { rows = append(rows, *r) }); err != nil {
		t.Fatal(err)
	}
	sum := sumRows(rows, 0)
	if len(rows) != 2 || len(sum) != 1 || sum[0].Msgs != 4 || sum[0].BytesOut != 40 || !sum[0].Minute.Equal(row.Minute) {
		t.Errorf("rows %+v, sum %+v", rows, sum)
	}
	totals, err := u.MonthMessages(row.Minute)
	if err != nil || totals["c"] != 4 {
		t.Errorf("totals %v, %v", totals, err)
	}
	if totals, err := u.MonthMessages(at("2026-11-01T00:00:00Z")); err != nil || len(totals) != 0 {
		t.Errorf("another month: %v, %v", totals, err)
	}
}

// TestUsageSurvivesARestart: what was metered is there, once, and counts for
// the month.
func TestUsageSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, open(t, dir))
	key, _, err := s.cell.Control().Bootstrap("acme")
	if err != nil {
		t.Fatal(err)
	}
	push := `{"items":[{"queue":"q","partition":"0","payload":1},{"queue":"q","partition":"0","payload":2}]}`
	s.mustCall(t, "POST", "/api/v1/push", key, push)
	s.end(t)
	s = serve(t, open(t, dir))
	defer s.end(t)
	s.mustCall(t, "POST", "/api/v1/push", key, push)
	got, err := s.cell.Admin().Do(AdminRequest{Op: OpUsage, Cluster: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Usage) != 1 || got.Usage[0].Msgs != 4 || got.Usage[0].Reqs != 2 || got.Usage[0].Class != "push" {
		t.Errorf("usage %+v", got.Usage)
	}
}

// TestUsagePrune: twelve months before the current one stay, and so does what
// is no month.
func TestUsagePrune(t *testing.T) {
	u := usageFiles{dir: filepath.Join(t.TempDir(), "usage")}
	now := at("2026-03-31T23:59:00Z")
	if err := u.prune(now); err != nil {
		t.Errorf("without a folder: %v", err)
	}
	for _, minute := range []string{"2024-12-31T23:59:00Z", "2025-02-28T23:59:00Z", "2025-03-01T00:00:00Z", "2026-03-31T00:00:00Z"} {
		if err := u.Append([]proxy.UsageRow{{Cluster: "c", Minute: at(minute), Class: proxy.OpPush}}); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(u.dir, "notes.jsonl")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := u.prune(now); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(u.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if got := strings.Join(left, " "); got != "2025-03.jsonl 2026-03.jsonl notes.jsonl" {
		t.Errorf("left are %s", got)
	}
}
