package noninterference

import (
	"encoding/json"

	"github.com/queen-mq/queen-edge/internal/cell"
)

// Events are what the cell's owner does to A.
const (
	throttled = "be-throttled"
	revoked   = "be-revoked"
	overQuota = "be-over-quota"
)

func events() []op {
	return []op{
		{throttled, func(c *client, _, _ int) { c.limit("max_req_per_sec", "1", "req_burst", "1") }},
		{overQuota, func(c *client, _, _ int) { c.limit("max_retained_bytes", "1", "max_queues", "1") }},
		{revoked, func(c *client, _, _ int) {
			c.administrate(cell.AdminRequest{Op: cell.OpKeyRevoke, Key: c.keyID.String()})
		}},
	}
}

// limit overrides limits of the client's cluster: names and values.
func (c *client) limit(pairs ...string) {
	limits := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		limits[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	c.administrate(cell.AdminRequest{Op: cell.OpClusterLimit, Cluster: c.slug, Limits: limits})
}

func (c *client) administrate(r cell.AdminRequest) {
	_, err := c.world.rig.Cell.Admin().Do(r)
	must(c.world.t, err)
}
