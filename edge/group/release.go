package group

import "github.com/queen-mq/queen-edge/tenancy"

// Release lets go of the groups that which names, and returns how many there
// were: another gateway coordinates them now. Those who wait are answered 15 and
// look for the coordinator; nothing is handed over, so members join it anew.
func (c *Coordinator) Release(which func(groupID string) bool) int {
	groups := c.all(func(k tenancy.Key[string]) bool { return which(k.Name()) }, false)
	for _, g := range groups {
		g.end()
	}
	c.released.Add(int64(len(groups)))
	return len(groups)
}
