package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdicts are how a check can end.
var verdicts = []string{"pass", "fail", "skip"}

// result is how one check ended.
type result struct {
	Verdict string `json:"verdict"`
	Why     string `json:"why,omitempty"`
}

// readLine is a record that a client says it read.
type readLine struct {
	offset int64
	fields fields
}

// block is what one version of one client reported.
type block struct {
	name, version string
	results       map[string]result
	topics        map[string]string     // by check
	reads         map[string][]readLine // by check
	groups        map[string]string     // names, by check
	got           map[string][]position // by check
	members       map[string][][]int32  // what each held, by check
	rebalances    map[string][2]int     // of the one that stays: before and after
	gone          map[string]string     // what it deleted, by check
	configs       map[string]map[string]string
	listed        []string
	said          map[string]string // by check
	cannot        map[string]string
	problems      []string // with the report itself
	start, end    time.Time
	log           string
}

func newBlock(name, version string) *block {
	return &block{
		name: name, version: version,
		results: map[string]result{}, topics: map[string]string{}, reads: map[string][]readLine{},
		groups: map[string]string{}, got: map[string][]position{}, members: map[string][][]int32{}, rebalances: map[string][2]int{},
		gone: map[string]string{}, configs: map[string]map[string]string{},
		said: map[string]string{}, cannot: map[string]string{},
	}
}

// parseReport reads what a client printed. There is always a block, so that
// there is always somebody to blame.
func parseReport(folder, text string) []*block {
	var blocks []*block
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if rest, ok := strings.CutPrefix(line, "client "); ok {
			name, version, _ := strings.Cut(rest, " ")
			blocks = append(blocks, newBlock(name, version))
			continue
		}
		if len(blocks) == 0 {
			blocks = append(blocks, newBlock(folder, "?"))
		}
		b := blocks[len(blocks)-1]
		if problem := b.take(line); problem != "" {
			b.problems = append(b.problems, fmt.Sprintf("%s: %.80q", problem, line))
		}
	}
	if len(blocks) == 0 {
		blocks = append(blocks, newBlock(folder, "?"))
	}
	return blocks
}

// take reads one line; what it returns is wrong with it.
func (b *block) take(line string) string {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "pass", "fail", "skip":
		return b.takeVerdict(word, rest)
	case "topic":
		check, topic, ok := strings.Cut(rest, " ")
		if !ok || b.topics[check] != "" {
			return "a check has one topic"
		}
		b.topics[check] = topic
	case "read":
		return b.takeRead(strings.Split(rest, " "))
	case "group", "got", "member", "rebalances":
		return b.takeGroup(word, strings.Split(rest, " "))
	case "gone", "config":
		return b.takeAdmin(word, strings.Split(rest, " "))
	case "list":
		b.listed = append(b.listed, rest)
	case "said":
		check, text, _ := strings.Cut(rest, " ")
		b.said[check] = strings.TrimSpace(b.said[check] + " " + text)
	case "cannot":
		what, why, ok := strings.Cut(rest, ": ")
		if !ok || why == "" {
			return "cannot needs a reason"
		}
		b.cannot[what] = why
	default:
		return "unknown line"
	}
	return ""
}

func (b *block) takeVerdict(verdict, rest string) string {
	check, why, _ := strings.Cut(rest, ": ")
	if verdict == "pass" && check != rest {
		return "pass takes no text"
	}
	if verdict != "pass" && strings.TrimSpace(why) == "" {
		return verdict + " needs a reason"
	}
	if _, twice := b.results[check]; twice {
		return "reported twice"
	}
	b.results[check] = result{verdict, why}
	return ""
}

func (b *block) takeRead(words []string) string {
	if len(words) != 6 {
		return "read has six words"
	}
	offset, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return "the offset is no number"
	}
	b.reads[words[0]] = append(b.reads[words[0]], readLine{offset, fields{words[2], words[3], words[4], words[5]}})
	return ""
}

// refute turns a pass into a fail; what did not pass keeps its own words.
func (b *block) refute(check, why string, args ...any) {
	if b.results[check].Verdict == "pass" {
		b.results[check] = result{"fail", fmt.Sprintf(why, args...)}
	}
}

// count is how many checks ended so. Every problem with the report is a fail of
// its own.
func (b *block) count(verdict string) int {
	n := 0
	for _, r := range b.results {
		if r.Verdict == verdict {
			n++
		}
	}
	if verdict == "fail" {
		n += len(b.problems)
	}
	return n
}

func (b *block) print(checks []check, out, details io.Writer) {
	fmt.Fprintf(out, "compat: %s %s", b.name, b.version)
	for _, v := range verdicts {
		fmt.Fprintf(out, " %s=%d", v, b.count(v))
	}
	fmt.Fprintln(out)
	for _, verdict := range []string{"fail", "skip"} {
		for _, c := range checks {
			if r := b.results[c.name]; r.Verdict == verdict {
				fmt.Fprintf(details, "    %s %s: %s\n", verdict, c.name, clip(r.Why))
			}
		}
	}
	for _, p := range b.problems {
		fmt.Fprintf(details, "    fail %s\n", clip(p))
	}
	for _, what := range sortedKeys(b.cannot) {
		fmt.Fprintf(details, "    cannot %s: %s\n", what, clip(b.cannot[what]))
	}
	if b.count("fail") > 0 {
		fmt.Fprintf(details, "    its log: %s\n", b.log)
	}
}

// printTotal prints the last two lines.
func printTotal(all []*block, out io.Writer) (failed bool) {
	sum := map[string]int{}
	for _, b := range all {
		for _, v := range verdicts {
			sum[v] += b.count(v)
		}
	}
	fmt.Fprintf(out, "compat: total clients=%d pass=%d fail=%d skip=%d\n", len(all), sum["pass"], sum["fail"], sum["skip"])
	fmt.Fprintf(out, "%d passed, %d failed\n", sum["pass"], sum["fail"])
	return sum["fail"] > 0
}

func writeJSON(path string, all []*block) error {
	type entry struct {
		Client   string            `json:"client"`
		Version  string            `json:"version"`
		Seconds  float64           `json:"seconds_of_its_run"`
		Checks   map[string]result `json:"checks"`
		Cannot   map[string]string `json:"cannot,omitempty"`
		Said     map[string]string `json:"said,omitempty"`
		Problems []string          `json:"problems,omitempty"`
	}
	out := make([]entry, len(all))
	for i, b := range all {
		out[i] = entry{b.name, b.version, b.end.Sub(b.start).Seconds(), b.results, b.cannot, b.said, b.problems}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// clip keeps a line readable.
func clip(s string) string {
	const most = 400
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
