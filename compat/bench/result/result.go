// Package result is what a run has measured, and what is made of it: tables, the
// aims beside their values, a drawing and a page. It measures nothing.
package result

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// Run is one run. Everything that is shown is made from its samples.
type Run struct {
	Made      string     `json:"made"` // RFC 3339
	Short     bool       `json:"short,omitempty"`
	Rounds    int        `json:"rounds"`
	Minutes   float64    `json:"minutes"`
	Machine   []Fact     `json:"machine"`
	Client    []string   `json:"client"` // settings
	Peers     []Peer     `json:"peers"`
	Workloads []Workload `json:"workloads"`
	Samples   []Sample   `json:"samples"`
}

// Fact is a name and what it is on the machine of the run.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Peer is one of the systems.
type Peer struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Settings []string `json:"settings"`
}

// Workload is what was done to the peers.
type Workload struct {
	ID    string              `json:"id"`
	Title string              `json:"title"`
	Wants map[string][]string `json:"wants"` // by peer: the values that every sample of it must have
}

// Sample is one workload of one peer in one round.
type Sample struct {
	Round    int                `json:"round"` // from 1
	Peer     string             `json:"peer"`
	Workload string             `json:"workload"`
	Values   map[string]float64 `json:"values"`
}

// Names of values. Those of a process have its name behind a dot.
const (
	MBps         = "mb_per_s" // of record values, 1 MB = 1,000,000 bytes
	RecordsPerS  = "records_per_s"
	Megabytes    = "mb" // of record values
	Seconds      = "seconds"
	SentPerRaw   = "sent_per_raw" // bytes of batches on the wire for each byte before compression
	CPUPerGB     = "cpu_s_per_gb"
	CPUPerLogin  = "cpu_ms_per_login"
	CPUPercent   = "cpu_percent" // of one core
	PeakMiB      = "peak_mib"
	KiBEach      = "kib_each" // resident size, for each connection
	CellPerK     = "cell_requests_per_1000_records"
	CellPerKOps  = "cell_requests_per_1000_client_requests"
	CellPerMin   = "cell_requests_per_minute"
	CellPerKLog  = "cell_requests_per_1000_logins"
	ClientPerMin = "client_requests_per_minute"
	SyncCount    = "syncs"
	SyncsPerGB   = "syncs_per_gb"
	P50          = "p50_ms"
	P99          = "p99_ms"
	P999         = "p999_ms"
	MaxMS        = "max_ms"
	LoginsPerS   = "logins_per_s"
	OthersCPU    = "others_cpu_percent" // of the machine, taken by what is not part of the run
)

// Read reads a run; nil if there is no such file.
func Read(path string) (*Run, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r Run
	return &r, json.Unmarshal(text, &r)
}

// Write writes a run.
func (r *Run) Write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Spread is a value over the rounds.
type Spread struct{ Median, Min, Max float64 }

// Of is a value of a peer over the rounds; false if it was not measured.
func (r *Run) Of(peer, workload, value string) (Spread, bool) {
	var all []float64
	for _, s := range r.Samples {
		if v, ok := s.Values[value]; ok && s.Peer == peer && s.Workload == workload {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return Spread{}, false
	}
	return Spread{median(all), slices.Min(all), slices.Max(all)}, true
}

// Ratio is how one peer's value is to another's, round by round: what differs
// from round to round is the machine's, and strikes both.
func (r *Run) Ratio(peer, other, workload, value string) (Spread, bool) {
	var all []float64
	for _, a := range r.Samples {
		for _, b := range r.Samples {
			if a.Round != b.Round || a.Workload != workload || b.Workload != workload || a.Peer != peer || b.Peer != other {
				continue
			}
			va, oka := a.Values[value]
			vb, okb := b.Values[value]
			if oka && okb && vb != 0 {
				all = append(all, va/vb)
			}
		}
	}
	if len(all) == 0 {
		return Spread{}, false
	}
	return Spread{median(all), slices.Min(all), slices.Max(all)}, true
}

// processes are the names behind the dot of a value, in the samples' order of
// appearance, sorted.
func (r *Run) processes(peer, workload, value string) []string {
	var names []string
	for _, s := range r.Samples {
		if s.Peer != peer || s.Workload != workload {
			continue
		}
		for name := range s.Values {
			if len(name) > len(value) && name[:len(value)+1] == value+"." && !slices.Contains(names, name[len(value)+1:]) {
				names = append(names, name[len(value)+1:])
			}
		}
	}
	slices.Sort(names)
	return names
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
