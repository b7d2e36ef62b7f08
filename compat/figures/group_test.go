package figures

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

const (
	groupMembers = 600
	groupRun     = 10 * time.Second
)

// BenchmarkGroup is a group of 600 in one process, with the gateway and the cell:
// it forms, then every member commits its partition over and over.
func BenchmarkGroup(b *testing.B) {
	var calls atomic.Int64
	r := rig.Start(b, func(o *rig.Options) {
		o.Plain = true
		o.CellAt = func(cell string) string { return counted(b, cell, &calls) }
		o.Config = func(c *config.Config) { c.MaxConnections, c.Limits.GroupMembers = 4*groupMembers, 2*groupMembers }
	})
	limits := map[string]json.RawMessage{}
	for _, name := range []string{"kv_writes_per_sec", "kv_writes_burst", "kv_reads_per_sec", "kv_reads_burst", "max_req_per_sec", "req_burst"} {
		limits[name] = json.RawMessage("1000000")
	}
	if err := r.Cell.Control().EditOverrides("acme", limits); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		figure := &groupFigure{rig: r, generations: map[int32]int{}, codes: map[int16]int{}}
		members := make([]*rig.Wire, groupMembers)
		for i := range members {
			members[i] = r.Login(b, rig.Acme)
			if err := members[i].SetDeadline(time.Now().Add(10 * time.Minute)); err != nil {
				b.Fatal(err)
			}
		}
		figure.begun = time.Now()
		var wg sync.WaitGroup
		for i, w := range members {
			wg.Go(func() {
				if err := figure.member(w, int32(i), &calls); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		figure.report(b, calls.Load())
	}
}

// counted puts a counter before the cell.
func counted(b *testing.B, cell string, calls *atomic.Int64) string {
	target, err := url.Parse(cell)
	if err != nil {
		b.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		calls.Add(1)
		forward.ServeHTTP(w, req)
	}))
	b.Cleanup(s.Close)
	return s.URL
}

type groupFigure struct {
	rig   *rig.Rig
	begun time.Time

	mu          sync.Mutex // guards the fields below
	generations map[int32]int
	formed      time.Duration
	codes       map[int16]int
	took        []time.Duration
	callsBefore int64
	commits     sync.Once
}

// ask is one request and its answer, at a version without tagged fields.
func ask[R kmsg.Response](w *rig.Wire, req kmsg.Request, resp R) (R, error) {
	const correlationBytes = 4
	if _, err := w.Write(rig.Frame(req, 1, "figures")); err != nil {
		return resp, err
	}
	b, err := w.ReadFrame()
	if err != nil {
		return resp, err
	}
	resp.SetVersion(req.GetVersion())
	return resp, resp.ReadFrom(b[correlationBytes:])
}

func (f *groupFigure) member(w *rig.Wire, index int32, calls *atomic.Int64) error {
	<-time.After(time.Duration(rand.Int64N(int64(8 * time.Second)))) // a fleet starts over a while
	id, generation, err := f.join(w)
	if err != nil {
		return err
	}
	f.commits.Do(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.formed, f.callsBefore = time.Since(f.begun), calls.Load()
	})
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 7, "fleet", id, generation
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic, topic.Partitions = "t", []kmsg.OffsetCommitRequestTopicPartition{kmsg.NewOffsetCommitRequestTopicPartition()}
	req.Topics = append(req.Topics, topic)
	for until := time.Now().Add(groupRun); time.Now().Before(until); {
		p := &req.Topics[0].Partitions[0]
		p.Partition, p.Offset = index, p.Offset+1
		began := time.Now()
		resp, err := ask(w, req, kmsg.NewPtrOffsetCommitResponse())
		if err != nil {
			return err
		}
		f.add(resp.Topics[0].Partitions[0].ErrorCode, time.Since(began))
	}
	return nil
}

func (f *groupFigure) add(code int16, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.codes[code]++
	f.took = append(f.took, took)
}

// join goes through JoinGroup and SyncGroup until there is an assignment.
func (f *groupFigure) join(w *rig.Wire) (id string, generation int32, err error) {
	for {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Version, req.Group, req.MemberID, req.ProtocolType = 5, "fleet", id, "consumer"
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 60_000, 300_000
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 0}}}
		joined, err := ask(w, req, kmsg.NewPtrJoinGroupResponse())
		if err != nil {
			return "", 0, err
		}
		if id = joined.MemberID; joined.ErrorCode != 0 {
			continue // 79: with the id, again
		}
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version, sync.Group, sync.MemberID, sync.Generation = 3, "fleet", id, joined.Generation
		for _, m := range joined.Members {
			sync.GroupAssignment = append(sync.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.MemberID, MemberAssignment: []byte(m.MemberID)})
		}
		synced, err := ask(w, sync, kmsg.NewPtrSyncGroupResponse())
		if err != nil {
			return "", 0, err
		}
		f.mu.Lock()
		f.generations[joined.Generation]++
		f.mu.Unlock()
		if synced.ErrorCode == 0 && string(synced.MemberAssignment) != id {
			return "", 0, fmt.Errorf("%s is assigned %q", id, synced.MemberAssignment)
		}
		if synced.ErrorCode == 0 {
			return id, joined.Generation, nil
		}
	}
}

func (f *groupFigure) report(b *testing.B, calls int64) {
	slices.Sort(f.took)
	n := len(f.took)
	if n == 0 {
		b.Fatal("nothing was committed")
	}
	for g, members := range f.generations {
		b.Logf("generation %d: %d members", g, members)
	}
	b.Logf("codes of commits: %v", f.codes)
	b.ReportMetric(float64(len(f.generations)), "generations")
	b.ReportMetric(f.formed.Seconds(), "s/to-form")
	b.ReportMetric(float64(n)/groupRun.Seconds(), "commits/s")
	b.ReportMetric(float64(f.took[n/2].Milliseconds()), "ms/commit-p50")
	b.ReportMetric(float64(f.took[n*99/100].Milliseconds()), "ms/commit-p99")
	b.ReportMetric(float64(calls-f.callsBefore)/float64(n), "calls/commit")
}
