package api

// DescribeLogDirs (35), versions 1–4 (KIP-113, KIP-827). One directory, named
// "queen", with the bytes the cell keeps of each partition; how much room there
// is left is not told (−1). Partitions without records weigh 0. A cell that does
// not tell sizes: no directory, and no error. At most 100 topics are asked for
// by one request, and sizes are reused for 5 s; topics beyond are left out.
// Topics null means all; a topic or partition that is not there is left out, as
// Apache Kafka does. One of several nodes lists what it leads, so that tools that
// ask all of them see each partition once.

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/cluster"
	"github.com/queen-mq/queen-edge/proxyclient"
)

const logDir = "queen"

func (h *Handlers) describeLogDirs(ctx context.Context, call Call, req *kmsg.DescribeLogDirsRequest) (*kmsg.DescribeLogDirsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DescribeLogDirsResponse)
	list, err := h.cfg.Catalog.Get(ctx, call.Scope)
	if err != nil {
		logDirsFailed(resp, err)
		return resp, nil
	}
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir, dir.TotalBytes, dir.UsableBytes = logDir, -1, -1
	w := weighing{h: h, call: call, nodes: h.nodes(call), dir: &dir, budget: h.cfg.MetadataPartitions}
	if req.Topics == nil {
		for _, t := range list.Topics() {
			w.topic(ctx, t, nil)
		}
	}
	seen := make(map[string]bool, len(req.Topics))
	for i := range req.Topics {
		t := &req.Topics[i]
		if topic, ok := list.Find(t.Topic); ok && !seen[t.Topic] {
			seen[t.Topic] = true
			w.topic(ctx, topic, t.Partitions)
		}
	}
	switch {
	case w.err != nil:
		logDirsFailed(resp, w.err)
	case !w.mute || len(dir.Topics) > 0:
		resp.Dirs = append(resp.Dirs, dir)
	}
	if w.skipped > 0 {
		h.cfg.Log.Warn("topics are left out of log directories: too many for one request",
			zap.Stringer("tenant", call.Scope.ID()), zap.Int("topics", w.skipped))
	}
	return resp, nil
}

// logDirsFailed is for a request that could not be answered. Below version 3
// only a directory can say so.
func logDirsFailed(resp *kmsg.DescribeLogDirsResponse, err error) {
	o := configCodes.of(err)
	resp.ThrottleMillis = o.throttle
	if resp.Version >= 3 {
		resp.ErrorCode = o.code
		return
	}
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir, dir.ErrorCode = logDir, o.code
	resp.Dirs = append(resp.Dirs, dir)
}

// weighing is one request under way.
type weighing struct {
	h       *Handlers
	call    Call
	nodes   *cluster.View
	dir     *kmsg.DescribeLogDirsResponseDir
	budget  int // partitions that may still be listed
	asked   int // calls
	skipped int
	mute    bool  // the cell does not tell sizes
	err     error // any other failure ends the request
}

// topic lists one topic: the partitions that were asked for, none meaning all.
func (w *weighing) topic(ctx context.Context, t catalog.Topic, partitions []int32) {
	if w.err != nil || w.mute {
		return
	}
	n := int(t.Width)
	if partitions != nil {
		n = min(n, len(partitions))
	}
	if w.budget -= n; w.budget < 0 {
		w.skipped++
		return
	}
	here := w.here(t, partitions)
	if len(here) == 0 {
		return
	}
	parts, known := w.h.sizes.of(w.call.Scope, t.Name, t.QueueID)
	if !known {
		if w.asked == w.h.cfg.Admin.SizeCalls {
			w.skipped++
			return
		}
		w.asked++
		var err error
		parts, err = w.h.sizes.ask(ctx, w.call.Scope, t.Name, t.QueueID)
		if errors.Is(err, proxyclient.ErrNoSizes) {
			w.mute = len(w.dir.Topics) == 0 // else the topic was deleted just now
			return
		}
		if w.err = err; err != nil {
			return
		}
	}
	w.list(t, here, parts)
}

// here are those of a topic's partitions, null meaning all, that are there and
// that this node leads, each once.
func (w *weighing) here(t catalog.Topic, partitions []int32) []int32 {
	var out []int32
	leaders := w.nodes.Leaders(t.Name)
	add := func(n int32) {
		if leader, _ := leaders.Of(n); leader == w.nodes.Self {
			out = append(out, n)
		}
	}
	if partitions == nil {
		for n := range t.Width {
			add(n)
		}
	}
	seen := make(map[int32]bool, min(len(partitions), int(t.Width)))
	for _, n := range partitions {
		if n >= 0 && n < t.Width && !seen[n] {
			seen[n] = true
			add(n)
		}
	}
	return out
}

func (w *weighing) list(t catalog.Topic, partitions []int32, parts []proxyclient.PartitionSize) {
	bytes := make(map[int32]int64, len(parts))
	for _, p := range parts {
		bytes[p.Partition] = p.Bytes
	}
	out := kmsg.NewDescribeLogDirsResponseDirTopic()
	out.Topic = t.Name
	for _, n := range partitions {
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition, p.Size = n, bytes[n]
		out.Partitions = append(out.Partitions, p)
	}
	w.dir.Topics = append(w.dir.Topics, out)
}
