package doctor

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
)

// commit commits one offset of a group that nobody uses, and deletes the group,
// whatever became of the commit.
func (d *run) commit(ctx context.Context) {
	if d.skip(commit) {
		return
	}
	group := "queen-edge-doctor-" + strings.ToLower(rand.Text())
	id, f := d.coordinator(ctx, group)
	if f.Status == "" {
		f = d.commitOnce(ctx, d.conns[id], group)
		left := d.deleteGroup(context.WithoutCancel(ctx), id, group)
		if left != "" && f.Status != steps.Failed {
			f = warned(causeLeftBehind, "committed, but the group "+group+" could not be deleted: "+left, "delete it with any Kafka tool; it holds one offset and no members")
		} else if left != "" {
			f.Next += "; the group " + group + " may be left behind: delete it with any Kafka tool"
		}
	}
	d.report.Add(commit, f)
}

// coordinator finds the broker that commits go to.
func (d *run) coordinator(ctx context.Context, group string) (int32, steps.Finding) {
	ctx, cancel := d.step(ctx)
	defer cancel()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorKey = 2, group
	got, err := d.broker(ctx, -1).ask(ctx, req)
	if err != nil {
		return 0, d.broken("FindCoordinator", err)
	}
	resp := got.(*kmsg.FindCoordinatorResponse)
	if resp.ErrorCode != 0 {
		return 0, groupRefused("FindCoordinator", resp.ErrorCode)
	}
	if d.conns[resp.NodeID] == nil {
		return 0, failed(causeNoBroker, fmt.Sprintf("FindCoordinator names broker %d, and Metadata does not", resp.NodeID), "this is no gateway of this version: check what is behind the address")
	}
	return resp.NodeID, steps.Finding{}
}

// commitOnce commits outside any generation, as a consumer does that assigns
// itself its partitions. The topic need not exist.
func (d *run) commitOnce(ctx context.Context, p *peer, group string) steps.Finding {
	ctx, cancel := d.step(ctx)
	defer cancel()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 7, group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	part := kmsg.NewOffsetCommitRequestTopicPartition()
	part.LeaderEpoch = -1
	t.Topic, t.Partitions = d.o.Topic, []kmsg.OffsetCommitRequestTopicPartition{part}
	if t.Topic == "" {
		t.Topic = clientID
	}
	req.Topics = []kmsg.OffsetCommitRequestTopic{t}
	got, err := p.ask(ctx, req)
	if err != nil {
		return d.broken("OffsetCommit", err)
	}
	resp := got.(*kmsg.OffsetCommitResponse)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return d.broken("OffsetCommit", errShape)
	}
	code := resp.Topics[0].Partitions[0].ErrorCode
	if code == 0 {
		return fine("one offset of the group " + group + " was committed, and the group deleted")
	}
	return groupRefused("OffsetCommit", code)
}

// groupRefused judges a code of a request about a group: two very different
// things have one code.
func groupRefused(what string, code int16) steps.Finding {
	f := refusedWith(what, code, "consume")
	if code == kerr.GroupAuthorizationFailed.Code {
		f.Next += " (for a token that is meant to produce only: --skip commit); if it has that, the cell has granted its cluster no keys and values: queen-edge check, run by the gateway's operator, tells the two apart"
	}
	return f
}

// deleteGroup gives what is left of the group; empty where nothing is.
func (d *run) deleteGroup(ctx context.Context, coordinator int32, group string) string {
	p := d.broker(ctx, coordinator)
	ctx, cancel := d.step(ctx)
	defer cancel()
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 1, []string{group}
	got, err := p.ask(ctx, req)
	if err != nil {
		return words(err)
	}
	resp := got.(*kmsg.DeleteGroupsResponse)
	if len(resp.Groups) != 1 {
		return errShape.Error()
	}
	switch code := resp.Groups[0].ErrorCode; code {
	case 0, kerr.GroupIDNotFound.Code:
		return ""
	default:
		return codeName(code)
	}
}
