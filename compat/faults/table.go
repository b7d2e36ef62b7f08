package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func (r result) print(out io.Writer) {
	state := "ok"
	if r.err != nil {
		state = "FAILED: " + r.err.Error()
	}
	fmt.Fprintf(out, "faults: %s: struck=%d behind=%d acked=%d twice=%d %.1fs %s\n",
		r.trial, r.fired, r.behind, r.acked, r.duplicates, r.took.Seconds(), state)
}

// printTables prints, for each window, how often each fault struck each client; a
// trial that failed counts as none and shows as a cross.
func printTables(results []result, out io.Writer) {
	var windows []int
	for _, r := range results {
		windows = addNew(windows, r.window)
	}
	for _, window := range windows {
		printTable(results, window, out)
	}
}

func printTable(results []result, window int, out io.Writer) {
	var rows, columns []string
	cells := map[[2]string]string{}
	acked, twice := 0, 0
	for _, r := range results {
		if r.window != window {
			continue
		}
		rows, columns = addNew(rows, r.fault.name), addNew(columns, r.client.name)
		cell := strconv.Itoa(r.fired)
		if r.err != nil {
			cell = "x"
		}
		cells[[2]string{r.fault.name, r.client.name}] = cell
		acked += r.acked
		twice += r.duplicates
	}
	fmt.Fprintf(out, "\nwindow=%ds: %d records acknowledged, %d written twice\n\n", window, acked, twice)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "fault\t"+strings.Join(columns, "\t"))
	for _, row := range rows {
		line := row
		for _, column := range columns {
			line += "\t" + cells[[2]string{row, column}]
		}
		fmt.Fprintln(w, line)
	}
	_ = w.Flush()
}

func addNew[T comparable](list []T, v T) []T {
	for _, have := range list {
		if have == v {
			return list
		}
	}
	return append(list, v)
}

// printTotal prints the closing line and says whether anything failed.
func printTotal(results []result, took time.Duration, out io.Writer) (failed bool) {
	bad := 0
	for _, r := range results {
		if r.err != nil {
			bad++
		}
	}
	fmt.Fprintf(out, "\nfaults: trials=%d in %.0fs\n%d passed, %d failed\n", len(results), took.Seconds(), len(results)-bad, bad)
	return bad > 0 || len(results) == 0
}
