package group

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Release lets go of the groups for which where names a code, and returns how
// many there were: another gateway coordinates them now (16), or nobody may for
// the moment (15). Those who wait in JoinGroup or SyncGroup are answered that, as
// Apache Kafka answers them when a coordinator's partition moves away. Nothing is
// handed over, so members join the group anew.
func (c *Coordinator) Release(where func(groupID string) *kerr.Error) int {
	groups := c.all(func(k tenancy.Key[string]) bool { return where(k.Name()) != nil }, false)
	for _, g := range groups {
		g.end(where(g.key.Name()))
	}
	c.released.Add(int64(len(groups)))
	return len(groups)
}
