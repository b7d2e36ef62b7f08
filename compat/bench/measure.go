package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/queen-mq/queen-edge/compat/bench/load"
	"github.com/queen-mq/queen-edge/compat/bench/peer"
	"github.com/queen-mq/queen-edge/compat/bench/result"
)

// running is a peer, and what counts its syncs.
type running struct {
	peer.Peer
	dir   string
	syncs *peer.Syncs // of the process that stores; nil: nobody counts
}

// look is what all processes have used at one moment.
type look struct {
	at      time.Time
	cpu     map[string]float64 // seconds
	resides map[string]float64 // MiB
	peak    map[string]float64 // MiB
	machine float64            // seconds
	cell    int64              // requests
	syncs   int64
}

// drive runs one load against a peer, and looks at all processes when its
// measured part begins and ends.
func (c *conductor) drive(ctx context.Context, r *running, spec load.Spec) (res load.Result, before, after look, err error) {
	ctx, cancel := peer.Together(ctx, r.Processes())
	defer cancel()
	client, err := peer.Start(ctx, peer.Command{
		Name: clientName, Dir: r.dir, Log: filepath.Join(r.dir, "client.log"), Args: []string{c.self, "load"}, Talk: true,
	})
	if err != nil {
		return res, before, after, err
	}
	defer client.Stop()
	defer client.In.Close()
	spec.Peer = r.Target()
	text, err := json.Marshal(spec)
	if err != nil {
		return res, before, after, err
	}
	if _, err := client.In.Write(append(text, '\n')); err != nil {
		return res, before, after, err
	}
	if _, err := said(ctx, client, func(e load.Event) bool { return e.Ready }); err != nil {
		return res, before, after, err
	}
	all := append(r.Processes(), client)
	if before, err = r.before(ctx, all); err != nil {
		return res, before, after, err
	}
	if _, err := client.In.Write([]byte("go\n")); err != nil {
		return res, before, after, err
	}
	profiled := c.profile(ctx, r, spec)
	event, err := said(ctx, client, func(e load.Event) bool { return e.Result != nil })
	if err != nil {
		return res, before, after, err
	}
	if err := <-profiled; err != nil {
		return res, before, after, err
	}
	if after, err = r.after(ctx, all); err != nil {
		return res, before, after, err
	}
	_, err = client.In.Write([]byte("end\n"))
	return *event.Result, before, after, err
}

// profile takes profiles of records on their way, and of logins, beside the load.
func (c *conductor) profile(ctx context.Context, r *running, spec load.Spec) <-chan error {
	done := make(chan error, 1)
	p, ok := r.Peer.(peer.Profiled)
	long := spec.Kind == load.Produce || spec.Kind == load.Consume || spec.Kind == load.Login && len(spec.Tokens) == 0
	if c.profiles == "" || !ok || !long {
		done <- nil
		return done
	}
	go func() { done <- p.Profile(ctx, filepath.Join(c.profiles, spec.Name+"-"+string(spec.Kind))) }()
	return done
}

// said is the next thing that a load says, which must be what is waited for.
func said(ctx context.Context, client *peer.Process, wanted func(load.Event) bool) (load.Event, error) {
	var event load.Event
	line, err := client.Line(ctx, "{")
	if err != nil {
		return event, err
	}
	switch err := json.Unmarshal([]byte("{"+line), &event); {
	case err != nil:
		return event, err
	case event.Error != "":
		return event, errors.New(event.Error)
	case !wanted(event):
		return event, fmt.Errorf("the load said %q, which is not what is waited for", line)
	}
	return event, nil
}

// before looks at the processes; what costs them something comes first.
func (r *running) before(ctx context.Context, all []*peer.Process) (look, error) {
	var l look
	if err := r.count(ctx, &l); err != nil {
		return l, err
	}
	for _, p := range all {
		if err := peer.ResetPeak(p.PID()); err != nil {
			return l, err
		}
	}
	return l, r.use(&l, all)
}

// after looks at the processes; what costs them something comes last.
func (r *running) after(ctx context.Context, all []*peer.Process) (look, error) {
	var l look
	if err := r.use(&l, all); err != nil {
		return l, err
	}
	return l, r.count(ctx, &l)
}

// use reads what the kernel knows.
func (r *running) use(l *look, all []*peer.Process) (err error) {
	l.cpu, l.resides, l.peak = map[string]float64{}, map[string]float64{}, map[string]float64{}
	l.at = time.Now()
	for _, p := range all {
		if l.cpu[p.Name], err = peer.CPU(p.PID()); err != nil {
			return err
		}
	}
	if l.machine, err = peer.MachineCPU(); err != nil {
		return err
	}
	for _, p := range all {
		if l.resides[p.Name], l.peak[p.Name], err = peer.Memory(p.PID()); err != nil {
			return err
		}
	}
	return nil
}

// count reads what is counted.
func (r *running) count(ctx context.Context, l *look) (err error) {
	if r.syncs != nil {
		if err := r.syncs.Settle(ctx); err != nil {
			return err
		}
		l.syncs = r.syncs.Total()
	}
	if cell, ok := r.Peer.(peer.Cell); ok {
		l.cell, err = cell.CellRequests(ctx)
	}
	return err
}

// values makes the values of a sample.
func (r *running) values(kind load.Kind, res load.Result, before, after look) map[string]float64 {
	v := map[string]float64{}
	_, hasCell := r.Peer.(peer.Cell)
	requests := float64(after.cell - before.cell)
	spent, mine := after.at.Sub(before.at).Seconds(), 0.0
	for name := range after.cpu {
		mine += after.cpu[name] - before.cpu[name]
	}
	v[result.OthersCPU] = max(0, 100*(after.machine-before.machine-mine)/spent/float64(runtime.NumCPU()))
	each := func(value string, of func(name string) float64) {
		for name := range after.cpu {
			v[value+"."+name] = of(name)
		}
	}
	used := func(name string) float64 { return after.cpu[name] - before.cpu[name] }
	peak := func(name string) float64 { return after.peak[name] }
	percent := func(name string) float64 { return 100 * used(name) / spent }
	switch kind {
	case load.Produce, load.Consume, load.FanOut:
		bytes, records := float64(res.Sum.Bytes), float64(res.Sum.Records)
		v[result.MBps], v[result.Megabytes] = bytes/1e6/res.Seconds, bytes/1e6
		v[result.RecordsPerS], v[result.Seconds] = records/res.Seconds, res.Seconds
		v[result.SentPerRaw] = float64(res.SentBytes) / float64(res.RawBytes)
		each(result.CPUPerGB, func(name string) float64 { return used(name) / (bytes / 1e9) })
		each(result.PeakMiB, peak)
		if hasCell {
			v[result.CellPerK], v[result.CellPerKOps] = 1000*requests/records, 1000*requests/float64(res.Requests)
		}
		if r.syncs != nil {
			v[result.SyncCount] = float64(after.syncs - before.syncs)
			v[result.SyncsPerGB] = v[result.SyncCount] / (bytes / 1e9)
		}
	case load.Latencies:
		v[result.P50], v[result.P99], v[result.P999], v[result.MaxMS] = res.Latency.P50, res.Latency.P99, res.Latency.P999, res.Latency.Max
		v[result.RecordsPerS], v[result.Seconds] = float64(res.Sum.Records)/res.Seconds, res.Seconds
		each(result.PeakMiB, peak)
		each(result.CPUPercent, percent)
		if hasCell {
			v[result.CellPerKOps] = 1000 * requests / float64(res.Requests)
		}
		if r.syncs != nil {
			v[result.SyncCount] = float64(after.syncs - before.syncs)
		}
	case load.Login:
		n := float64(res.Count)
		v[result.LoginsPerS], v[result.Seconds] = n/res.Seconds, res.Seconds
		each(result.CPUPerLogin, func(name string) float64 { return 1000 * used(name) / n })
		if hasCell {
			v[result.CellPerKLog] = 1000 * requests / n
		}
	case load.Idle:
		each(result.KiBEach, func(name string) float64 {
			return max(0, 1024*(after.resides[name]-before.resides[name])/float64(res.Count))
		})
	case load.Consumers:
		v[result.ClientPerMin], v[result.Seconds] = float64(res.Requests)*60/res.Seconds, res.Seconds
		each(result.CPUPercent, percent)
		each(result.PeakMiB, peak)
		if hasCell {
			v[result.CellPerMin] = requests * 60 / res.Seconds
		}
	}
	return v
}
