package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/history"
)

func (r txnResult) print(out io.Writer) {
	state := "ok"
	if r.err != nil {
		state = "FAILED: " + r.err.Error()
	}
	var met []string
	for _, m := range r.met {
		met = append(met, m.String())
	}
	if len(met) == 0 {
		met = []string{"nothing"}
	}
	fmt.Fprintf(out, "faults: %s: struck=%d records=%d committed=%d aborted=%d fenced=%d untold=%d %.1fs met %s; %s; %s\n",
		r.txnTrial, r.struck, r.records, r.txns[history.Committed], r.txns[history.Aborted], r.txns[history.Fenced], r.txns[history.Unknown],
		r.took.Seconds(), strings.Join(met, ", "), r.verdict, state)
}

// printTransactions prints how often each fault struck each client at each step,
// what the applications met, and the closing lines. It says whether anything
// failed.
func printTransactions(results []txnResult, took time.Duration, out io.Writer) (failed bool) {
	printTxnTable(results, out, "fault", func(r txnResult) string {
		if r.err != nil {
			return "x"
		}
		return strconv.Itoa(r.struck)
	})
	printTxnTable(results, out, "what the application met", func(r txnResult) string {
		var met []string
		for _, m := range r.met {
			if m.class != metRetry {
				met = append(met, m.String())
			}
		}
		return strings.Join(met, ", ")
	})
	runs, bad, checked, operations, illegal := 0, 0, 0, 0, 0
	for _, r := range results {
		if r.err != nil {
			bad++
		} else {
			runs += r.struck
		}
		if r.verdict.Operations > 0 {
			checked++
		}
		operations += r.verdict.Operations
		if r.verdict.Err != nil {
			illegal++
		}
	}
	fmt.Fprintf(out, "\nhistories: %d checked, %d operations, %d not linearizable\n", checked, operations, illegal)
	fmt.Fprintf(out, "faults: runs=%d trials=%d in %.0fs\n%d passed, %d failed\n", runs, len(results), took.Seconds(), len(results)-bad, bad)
	return bad > 0 || len(results) == 0
}

// printTxnTable has a row for each fault and step, and a column for each client.
func printTxnTable(results []txnResult, out io.Writer, title string, cell func(txnResult) string) {
	var rows, columns []string
	cells := map[[2]string]string{}
	for _, r := range results {
		rows, columns = addNew(rows, r.strike.String()), addNew(columns, r.client.name)
		cells[[2]string{r.strike.String(), r.client.name}] = cell(r)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\n"+title+"\t"+strings.Join(columns, "\t"))
	for _, row := range rows {
		line := row
		for _, column := range columns {
			line += "\t" + cells[[2]string{row, column}]
		}
		fmt.Fprintln(w, line)
	}
	_ = w.Flush()
}
