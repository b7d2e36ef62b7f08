package proxy

import (
	"net/http"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// blockedRoutes answers what nobody may call.
func (p *Proxy) blockedRoutes(c *call) *refusal {
	if c.target.class == classBlocked {
		return routeBlocked()
	}
	return nil
}

// statusGate stops a suspended cluster on every route.
func (p *Proxy) statusGate(c *call) *refusal {
	switch c.cluster.Status {
	case control.Suspended, control.Deleting:
		return refuse(http.StatusForbidden, "cluster_suspended", "cluster suspended")
	default:
		return nil
	}
}

// planGate stops features the plan has not, and what would add anything while
// the cluster is blocked.
func (p *Proxy) planGate(c *call) *refusal {
	if c.target.class == classGated && !c.target.feature.on(c.cluster.Features) {
		return refuse(http.StatusForbidden, "feature_gated", "not in your plan")
	}
	if c.target.class == classProduce || c.target.class == classGated && c.kv != nil && c.kv.grows {
		return p.pushBlock(c.cluster)
	}
	return nil
}
