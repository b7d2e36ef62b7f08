package result

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// table is a title, and rows of cells of which the first is the heading.
type table struct {
	title, note string
	rows        [][]string
}

// short tells a number with three digits.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// spread tells a median with what the rounds lay between.
func spread(s Spread, ok bool) string {
	if !ok {
		return "–"
	}
	if short(s.Min) == short(s.Max) {
		return short(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", short(s.Median), short(s.Min), short(s.Max))
}

// tables are all figures of a run.
func (r *Run) tables() []table {
	moved := r.having(MBps)
	all := []table{
		r.compare("Throughput, MB/s of record values", MBps, moved, "Times the others: queen-edge's median ratio, round by round.", true),
		r.compare("Single records, p99 ms from the moment a record was due", P99, r.having(P99), "", true),
		r.compare("Single records, p50 ms", P50, r.having(P50), "", true),
		r.compare("Single records, p99.9 ms", P999, r.having(P999), "", false),
		r.compare("Single records a second", RecordsPerS, r.having(P99), "What was asked for is reached where the figure says so; half of the maximum is half of each peer's own 1 KB produce rate.", false),
		r.compare("Logins a second", LoginsPerS, r.having(LoginsPerS), "Apache Kafka knows no difference between a token it has seen and one it has not.", true),
		r.byProcess("Processor seconds for each GB of record values", CPUPerGB, moved),
		r.byProcess("Processor milliseconds for each login", CPUPerLogin, r.having(LoginsPerS)),
		r.byProcess("Peak resident memory, MiB", PeakMiB, append(slices.Clone(moved), r.having(P99)...)),
		r.byProcess("Resident memory for each idle connection, KiB", KiBEach, r.workloads()),
		r.byProcess("Single records: processor time, % of one core", CPUPercent, r.having(P99)),
		r.byProcess("Idle consumers: processor time, % of one core", CPUPercent, r.having(ClientPerMin)),
		r.byProcess("Idle consumers: peak resident memory, MiB", PeakMiB, r.having(ClientPerMin)),
		r.compare("Idle consumers: requests a minute that clients send", ClientPerMin, r.workloads(), "", false),
		r.compare("Idle consumers: requests a minute to the cell", CellPerMin, r.workloads(), "", false),
		r.compare("Requests to the cell for each 1,000 records", CellPerK, moved, "GET /auth/me is not metered by a cell, and not counted.", false),
		r.compare("Requests to the cell for each 1,000 requests of clients", CellPerKOps, append(slices.Clone(moved), r.having(P99)...), "", false),
		r.compare("Requests to the cell for each 1,000 logins", CellPerKLog, r.having(LoginsPerS), "GET /auth/me is not metered by a cell, and not counted.", false),
		r.compare("Syncs for each GB of record values", SyncsPerGB, moved, "fsync and fdatasync calls of the process that stores, by the kernel's trace points.", false),
		r.compare("Bytes of batches on the wire for each byte of records", SentPerRaw, moved, "", false),
		r.compare("Processor time of what is not part of the run, % of the machine", OthersCPU, moved, "The kernel's own threads are among it.", false),
	}
	return slices.DeleteFunc(all, func(t table) bool { return len(t.rows) < 2 })
}

func (r *Run) workloads() []string {
	var ids []string
	for _, w := range r.Workloads {
		ids = append(ids, w.ID)
	}
	return ids
}

// having are the workloads that want a value.
func (r *Run) having(value string) []string {
	var ids []string
	for _, w := range r.Workloads {
		for _, wants := range w.Wants {
			if slices.Contains(wants, value) {
				ids = append(ids, w.ID)
				break
			}
		}
	}
	return ids
}

// title is a workload's title.
func (r *Run) title(workload string) string {
	for _, w := range r.Workloads {
		if w.ID == workload {
			return w.Title
		}
	}
	return workload
}

// compare has a row for each workload and a column for each peer that has the
// value; with ratios, queen-edge's to the others as well.
func (r *Run) compare(title, value string, workloads []string, note string, ratios bool) table {
	t := table{title: title, note: note}
	var peers []Peer
	for _, p := range r.Peers {
		if slices.ContainsFunc(workloads, func(w string) bool { _, ok := r.Of(p.ID, w, value); return ok }) {
			peers = append(peers, p)
		}
	}
	head := []string{""}
	for _, p := range peers {
		head = append(head, p.Title)
	}
	if ratios {
		for _, p := range peers {
			if p.ID != subject {
				head = append(head, "× "+p.Title)
			}
		}
	}
	t.rows = append(t.rows, head)
	for _, w := range workloads {
		row := []string{r.title(w)}
		any := false
		for _, p := range peers {
			s, ok := r.Of(p.ID, w, value)
			any = any || ok
			row = append(row, spread(s, ok))
		}
		if ratios {
			for _, p := range peers {
				if p.ID != subject {
					row = append(row, spread(r.Ratio(subject, p.ID, w, value)))
				}
			}
		}
		if any {
			t.rows = append(t.rows, row)
		}
	}
	return t
}

// byProcess has a row for each workload and a column for each process of each
// peer.
func (r *Run) byProcess(title, value string, workloads []string) table {
	t := table{title: title}
	type column struct{ peer, process string }
	var columns []column
	head := []string{""}
	for _, p := range r.Peers {
		var names []string
		for _, w := range workloads {
			for _, name := range r.processes(p.ID, w, value) {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		for _, name := range names {
			columns = append(columns, column{p.ID, name})
			head = append(head, p.Title+": "+name)
		}
	}
	t.rows = append(t.rows, head)
	for _, w := range workloads {
		row, any := []string{r.title(w)}, false
		for _, c := range columns {
			s, ok := r.Of(c.peer, w, value+"."+c.process)
			any = any || ok
			row = append(row, spread(s, ok))
		}
		if any {
			t.rows = append(t.rows, row)
		}
	}
	return t
}

// Print writes everything for a terminal.
func (r *Run) Print(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Machine {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	fmt.Fprintf(&b, "\nclient:\n  %s\n", strings.Join(r.Client, "\n  "))
	for _, p := range r.Peers {
		fmt.Fprintf(&b, "%s:\n  %s\n", p.Title, strings.Join(p.Settings, "\n  "))
	}
	fmt.Fprintf(&b, "\nmedians of %d rounds (lowest–highest)\n", r.Rounds)
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n%s\n", t.title)
		b.WriteString(columns(t.rows))
		if t.note != "" {
			fmt.Fprintf(&b, "  %s\n", t.note)
		}
	}
	rows := [][]string{{"aim", "", "measured", ""}}
	for _, a := range r.Aims() {
		rows = append(rows, []string{a.Measure, a.Aim, a.Value, a.Reached})
	}
	fmt.Fprintf(&b, "\nAims\n%s", columns(rows))
	_, err := io.WriteString(w, b.String())
	return err
}

// columns sets rows below each other.
func columns(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString("  " + cell + strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
