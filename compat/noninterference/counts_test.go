package noninterference

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/api"
)

// counts are answers by API.
type counts struct{ all, good map[int16]int }

func newCounts() *counts { return &counts{map[int16]int{}, map[int16]int{}} }

// add counts an answer. One that is an error and what a client of that API wants
// to hear is good.
func (c *counts) add(resp kmsg.Response) {
	right := map[int16]int16{11: 79, 29: 54, 30: 54, 31: 54}[resp.Key()]
	c.all[resp.Key()]++
	for _, code := range rig.ErrorCodes(resp) {
		if code != 0 && code != right {
			return
		}
	}
	c.good[resp.Key()]++
}

// share is the part of good answers, in per cent.
func (c *counts) share(key int16) int { return 100 * c.good[key] / max(c.all[key], 1) }

// tally is what all scripts have asked.
type tally struct{ behaved, other, b *counts }

func newTally() *tally { return &tally{newCounts(), newCounts(), newCounts()} }

func (t *tally) of(mode, who string) *counts {
	switch {
	case who == b:
		return t.b
	case mode == wellBehaved:
		return t.behaved
	}
	return t.other
}

const (
	leastFull  = 200 // executions of an API in the full form
	leastShare = 50  // per cent of good answers to who behaves well
)

// print prints the table, and checks it.
func (t *tally) print(tb testing.TB, scripts int, full bool) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "API\texecutions\terror 0: B\tA well-behaved\tA otherwise\t")
	total := 0
	for _, row := range api.Table() {
		key, all := row.Key, 0
		for _, c := range []*counts{t.b, t.behaved, t.other} {
			all += c.all[key]
		}
		total += all
		fmt.Fprintf(w, "%s\t%d\t%d %%\t%d %%\t%d %%\t\n", row.Name, all, t.b.share(key), t.behaved.share(key), t.other.share(key))
		if full && all < leastFull {
			tb.Errorf("%s was asked %d times, want %d", row.Name, all, leastFull)
		}
		for who, c := range map[string]*counts{"B": t.b, "a well-behaved A": t.behaved} {
			if c.all[key] > 0 && c.share(key) < leastShare {
				tb.Errorf("%s answers %s %d %% without an error, want %d", row.Name, who, c.share(key), leastShare)
			}
		}
	}
	_ = w.Flush()
	fmt.Printf("%snoninterference: %d scripts, %d requests, %d APIs\n", out.String(), scripts, total, len(api.Table()))
}
