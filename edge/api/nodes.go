package api

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/edge/cluster"
	"github.com/queen-mq/queen-edge/edge/offsets"
)

// nodes is who is there, for one response: what it says must come from one look.
// A gateway that is alone is the one node.
func (h *Handlers) nodes(call Call) *cluster.View {
	if h.cfg.Cluster != nil {
		return h.cfg.Cluster.View()
	}
	return cluster.Alone(clusterID, cluster.Member{ID: nodeID, Host: h.host(call), Port: h.cfg.Port})
}

// clustered reports a gateway that is one of several (kafka-surface §11). It has
// no transactions: they live in one process.
func (h *Handlers) clustered() bool { return h.cfg.Cluster != nil }

// refuseCoordinated is refuseGroup for requests that a group's coordinator alone
// answers: 15 where this node coordinates nothing now, 16 where another one has
// the group. Nothing of the group is looked at before.
func (h *Handlers) refuseCoordinated(call Call, groupID string) *kerr.Error {
	if e := refuseGroup(call.Scope, groupID); e != nil {
		return e
	}
	return h.elsewhere(groupID)
}

func (h *Handlers) elsewhere(groupID string) *kerr.Error {
	if h.cfg.Cluster == nil {
		return nil
	}
	switch v := h.cfg.Cluster.View(); {
	case !v.Coordinates(h.cfg.Clock()):
		return kerr.CoordinatorNotAvailable
	case !v.Owns(groupID):
		return kerr.NotCoordinator
	}
	return nil
}

// stillHere is the refusal of a group's own state. One that has been let go since
// the request was looked at is a group nobody has heard of: its members are told
// where to look, and not that they are unknown, which ends a commit for good.
func (h *Handlers) stillHere(groupID string, refusal *kerr.Error) *kerr.Error {
	if refusal != nil {
		if e := h.elsewhere(groupID); e != nil {
			return e
		}
	}
	return refusal
}

// sayNoTransactions is why there are none where there are several gateways.
const sayNoTransactions = "Transactions live in one gateway: with several nodes (QUEEN_KAFKA_NODE_ID) there are none."

// writeCode is the code of a write of offsets that failed.
func writeCode(err error) int16 {
	switch err {
	case offsets.ErrMoved:
		return kerr.NotCoordinator.Code
	case offsets.ErrContended:
		return kerr.CoordinatorNotAvailable.Code
	}
	return groupCodes.of(err).code
}

// self is this node's id.
func (h *Handlers) self() int32 {
	if h.cfg.Cluster == nil {
		return nodeID
	}
	return h.cfg.Cluster.View().Self
}

// ownNode reports whether a name of a broker's configs means this one: its id, or
// none, which is the cluster's default.
func (h *Handlers) ownNode(name string) bool {
	return name == "" || name == strconv.Itoa(int(h.self()))
}

func (h *Handlers) sayOwnNode() string {
	if h.cfg.Cluster == nil {
		return fmt.Sprintf("There is one broker, of id %d.", nodeID)
	}
	return fmt.Sprintf("This is the broker of id %d; ask another one of itself.", h.self())
}
