package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/queen-mq/queen-edge/compat/bench/load"
	"github.com/queen-mq/queen-edge/compat/bench/peer"
	"github.com/queen-mq/queen-edge/compat/bench/result"
)

// size is how much of everything a run does.
type size struct {
	rounds    int
	disk      float64 // bytes that a run may take at a time
	seconds   float64 // of writing
	maxBytes  int64   // of one workload's values: the disk, and the time to read them
	warm      float64 // seconds of writing before anything is measured
	single    float64 // seconds of single records
	login     float64
	tokens    int // of cold logins
	idle      int // connections
	consumers int
	watch     float64 // seconds of watching idle consumers
}

func full() size {
	return size{
		rounds: 3, disk: 8e9, seconds: 3, maxBytes: 400e6, warm: 4, single: 8, login: 2.5, tokens: 400, idle: 2000, consumers: 1000, watch: 12,
	}
}

// brief runs everything and measures nothing that is worth keeping.
func brief() size {
	return size{
		rounds: 1, disk: 2e9, seconds: .25, maxBytes: 8e6, warm: .25, single: .3, login: .3, tokens: 8, idle: 50, consumers: 20, watch: 4,
	}
}

const (
	fanGroups    = 10 // that read one topic
	groupMembers = 10 // of each group of idle consumers
	loginLanes   = 8  // at a time
	singleRate   = 500
	halfOf       = "1KB-none" // half of the maximum is half of this
)

// step is one workload: what the load does, and what is made of it.
type step struct {
	id, title string
	spec      load.Spec
	half      bool // the rate is half of what halfOf has reached
	fresh     bool // the tokens are new
	peers     []string
}

// produced and consumed are the two halves of a step that moves records.
const (
	produced = "/produce"
	consumed = "/consume"
)

// plan is every step, in the order in which a peer goes through them. Idle
// connections come first, while the processes are fresh, and idle consumers
// last, since they leave a thousand members behind.
func (z size) plan() []step {
	kafkas := []string{peer.Queen, peer.KafkaTLS, peer.KafkaSync, peer.KafkaOpen}
	logins := []string{peer.Queen, peer.KafkaTLS, peer.Bare}
	steps := []step{
		{
			id: "idle-connections", title: "idle logged-in connections", peers: logins,
			spec: load.Spec{Kind: load.Idle, Count: z.idle, Lanes: loginLanes},
		},
		{
			id: "login-warm", title: "login, token seen before", peers: logins,
			spec: load.Spec{Kind: load.Login, Seconds: z.login, Lanes: loginLanes},
		},
		{
			id: "login-cold", title: "login, new token", peers: []string{peer.Queen}, fresh: true,
			spec: load.Spec{Kind: load.Login, Lanes: loginLanes},
		},
	}
	for _, m := range []struct {
		id, title, codec              string
		bytes, topics, parts, clients int
	}{
		{halfOf, "1 KB", "none", 1000, 1, 4, 1},
		{"1KB-lz4", "1 KB, lz4", "lz4", 1000, 1, 4, 1},
		{"1KB-zstd", "1 KB, zstd", "zstd", 1000, 1, 4, 1},
		{"100B", "100 B", "none", 100, 1, 4, 1},
		{"100KB", "100 KB", "none", 100_000, 1, 4, 1},
		{"10-topics", "1 KB, 10 topics", "none", 1000, 10, 4, 1},
		{"100-topics", "1 KB, 100 topics", "none", 1000, 100, 1, 1},
		{"50-connections", "1 KB, 50 connections", "none", 1000, 1, 50, 50},
	} {
		steps = append(steps, step{id: m.id, title: m.title, peers: kafkas, spec: load.Spec{
			Kind: load.Produce, RecordBytes: m.bytes, Codec: m.codec, Topics: m.topics, Partitions: m.parts, Clients: m.clients,
			Seconds: z.seconds, MaxBytes: z.maxBytes,
		}})
	}
	record := load.Spec{RecordBytes: 1000, Codec: "none", Topics: 1, Partitions: 4, Clients: 1, Seconds: z.single, MaxBytes: z.maxBytes}
	fan, steady, half := record, record, record
	fan.Kind, fan.Groups, fan.Seconds, fan.MaxBytes = load.FanOut, fanGroups, z.seconds, z.maxBytes/2
	steady.Kind, steady.Rate = load.Latencies, singleRate
	half.Kind = load.Latencies
	return append(steps,
		step{id: "fan-out", title: fmt.Sprintf("1 KB, read by %d groups (delivered)", fanGroups), peers: kafkas, spec: fan},
		step{id: "latency-500", title: fmt.Sprintf("%d a second", singleRate), peers: kafkas, spec: steady},
		step{id: "latency-half", title: "half of the maximum", peers: kafkas, spec: half, half: true},
		step{id: "idle-consumers", title: fmt.Sprintf("%d idle consumers", z.consumers), peers: logins[:2], spec: load.Spec{
			Kind: load.Consumers, Count: z.consumers, Groups: z.consumers / groupMembers, Partitions: groupMembers, Seconds: z.watch,
		}})
}

// workloads are a step's workloads with the values that each must have.
func (s step) workloads(counted bool) []result.Workload {
	if s.spec.Kind != load.Produce {
		return []result.Workload{{ID: s.id, Title: s.title, Wants: s.wants(s.spec.Kind, counted)}}
	}
	return []result.Workload{
		{ID: s.id + produced, Title: "produce " + s.title, Wants: s.wants(load.Produce, counted)},
		{ID: s.id + consumed, Title: "consume " + s.title, Wants: s.wants(load.Consume, counted)},
	}
}

// wants are the values that a sample of a kind must have, by peer. counted says
// that syncs can be counted here.
func (s step) wants(kind load.Kind, counted bool) map[string][]string {
	wants := map[string][]string{}
	for _, id := range s.peers {
		all, each, cell := values(kind)
		wants[id] = append(wants[id], all...)
		for _, process := range append(processes(id), clientName) {
			for _, v := range each {
				wants[id] = append(wants[id], v+"."+process)
			}
		}
		if id == peer.Queen {
			wants[id] = append(wants[id], cell...)
		}
		if counted && slices.Contains(all, result.MBps) {
			wants[id] = append(wants[id], result.SyncsPerGB)
		}
	}
	return wants
}

// values are those of a kind: of every peer, of each process, and of a cell.
func values(kind load.Kind) (all, each, cell []string) {
	switch kind {
	case load.Produce, load.Consume, load.FanOut:
		return []string{result.MBps, result.RecordsPerS, result.Megabytes, result.Seconds, result.SentPerRaw, result.OthersCPU},
			[]string{result.CPUPerGB, result.PeakMiB}, []string{result.CellPerK, result.CellPerKOps}
	case load.Latencies:
		return []string{result.P50, result.P99, result.P999, result.MaxMS, result.RecordsPerS, result.OthersCPU},
			[]string{result.PeakMiB, result.CPUPercent}, []string{result.CellPerKOps}
	case load.Login:
		return []string{result.LoginsPerS, result.OthersCPU}, []string{result.CPUPerLogin}, []string{result.CellPerKLog}
	case load.Idle:
		return nil, []string{result.KiBEach}, nil
	default:
		return []string{result.ClientPerMin}, []string{result.CPUPercent, result.PeakMiB}, []string{result.CellPerMin}
	}
}

// clientName is the load program's name among the processes.
const clientName = "client"

func processes(id string) []string {
	switch id {
	case peer.Queen:
		return []string{"gateway", "cell"}
	case peer.Bare:
		return []string{"bare"}
	default:
		return []string{"kafka"}
	}
}

// choose keeps the steps of which a name is a part, and the one that another
// needs, in their order.
func choose(steps []step, only string) []step {
	if only == "" {
		return steps
	}
	named := func(s step) bool {
		return slices.ContainsFunc(strings.Split(only, ","), func(name string) bool { return strings.Contains(s.id, name) })
	}
	needed := slices.ContainsFunc(steps, func(s step) bool { return s.half && named(s) })
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !named(s) && !(needed && s.id == halfOf) })
}
