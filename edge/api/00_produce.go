package api

// Produce (0), versions 0–13 (KIP-32, KIP-98, KIP-110, KIP-467, KIP-482, KIP-516, KIP-951).
// Record batches of magic 2, every codec; zstd from version 7 on, else 76. Below
// version 3 messages of magic 0 and 1 as well, with every codec they had; those
// of magic 0 get the time of their append. One push per request, or per run of
// requests that were already received (coalescing). acks=1 and −1 are the same
// durable path; acks=0 has no answer, and a failure closes the connection, which
// is how the client learns of it. Version 13 names topics by id: one that this
// tenant has no topic for is 100, and nothing is created for it. A success carries
// no log start offset (−1). Records with a transactional id are kept until EndTxn
// (produce_txn.go): their base offset is −1. A resend of an idempotent producer is
// known to the log, where the topic has a deduplication window, over any
// connection; where it has none, over its own only (B3).
//
// The way of a request: 00_produce.go makes the answer and its parts,
// produce_push.go sends one push body after another, which produce_parts.go fills.

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/wire"
)

const produceKey = 0

func (h *Handlers) produce(ctx context.Context, call Call, req *kmsg.ProduceRequest) (kmsg.Response, error) {
	resps := h.produceAll(ctx, call.Conn, []*kmsg.ProduceRequest{req})
	answer, err := produceAnswer(req, resps[0])
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return noReply{}, nil
	}
	return answer, nil
}

// produceAnswer is the response to send: none for acks=0, whose failure ends the
// connection (B1).
func produceAnswer(req *kmsg.ProduceRequest, resp *kmsg.ProduceResponse) (kmsg.Response, error) {
	if req.Acks != 0 {
		return resp, nil
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if p := &resp.Topics[i].Partitions[j]; p.ErrorCode != 0 {
				return nil, wire.Closing(wire.AcksZeroFailed, fmt.Errorf("%s", errorName(p.ErrorCode)))
			}
		}
	}
	return nil, nil
}

func errorName(code int16) string {
	if err, ok := kerr.ErrorForCode(code).(*kerr.Error); ok {
		return err.Message
	}
	return fmt.Sprint(code)
}

// produceAll answers a run of requests of one connection, in their order.
func (h *Handlers) produceAll(ctx context.Context, c *Conn, reqs []*kmsg.ProduceRequest) []*kmsg.ProduceResponse {
	h.Stats.frames.Add(int64(len(reqs)))
	run := h.newRun(c, reqs)
	defer run.release()
	run.resolve(h.resolveTopics(ctx, c, reqs), h.resolveIDs(ctx, c, reqs))
	run.reserve(ctx)
	run.move(ctx)
	return run.resps
}

// resolveTopics looks up, and creates where missing, the topics of all requests.
func (h *Handlers) resolveTopics(ctx context.Context, c *Conn, reqs []*kmsg.ProduceRequest) []catalog.Resolved {
	var names []string
	for _, req := range reqs {
		if code, _ := requestRefusal(req); code != 0 || req.Version >= firstProduceIDs {
			continue // nothing is created for it
		}
		for i := range req.Topics {
			if h.writable(c, req, &req.Topics[i]) {
				names = appendNew(names, req.Topics[i].Topic)
			}
		}
	}
	resolved := h.cfg.Catalog.Resolve(ctx, c.scope, names, true)
	c.madeBy("Produce", resolved)
	return resolved
}

// firstProduceIDs is the version from which a request names topics by id.
const firstProduceIDs = 13

// resolveIDs looks up the topics that requests name by id.
func (h *Handlers) resolveIDs(ctx context.Context, c *Conn, reqs []*kmsg.ProduceRequest) []catalog.Resolved {
	var ids []catalog.TopicID
	for _, req := range reqs {
		if req.Version < firstProduceIDs {
			continue
		}
		for i := range req.Topics {
			ids = appendNew(ids, catalog.TopicID(req.Topics[i].TopicID))
		}
	}
	return h.cfg.Catalog.ResolveIDs(ctx, c.scope, ids)
}

// appendNew keeps names distinct. Requests name few topics; past a point a scan
// would be quadratic, and then a second look-up of the same name costs less.
func appendNew[T comparable](names []T, name T) []T {
	const scan = 64
	for _, n := range names[:min(len(names), scan)] {
		if n == name {
			return names
		}
	}
	return append(names, name)
}
