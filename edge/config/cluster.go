package config

import "time"

// Cluster makes a gateway one of several nodes (kafka-surface §11).
type Cluster struct {
	NodeID    int32         // QUEEN_KAFKA_NODE_ID: 1–64; 0: single mode
	Name      string        // QUEEN_KAFKA_CLUSTER; empty: queen
	Heartbeat time.Duration // QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS: between two renewals of the node's row
	TTL       time.Duration // QUEEN_KAFKA_CLUSTER_TTL_MS: life of a row that is not renewed
}

const (
	defaultCluster = "queen"
	maxClusterName = 64
	heartbeatsMin  = 3 // that a row outlives
)

// ID is what clients are told the cluster is called.
func (c Cluster) ID() string {
	if c.Name == "" {
		return defaultCluster
	}
	return c.Name
}

func defaultClusterSettings() Cluster {
	return Cluster{Heartbeat: 2 * time.Second, TTL: 10 * time.Second}
}

func nodeID() variable {
	v := integer("QUEEN_KAFKA_NODE_ID", "makes this gateway one of several nodes, with an id that no other has and an advertised address of its own (docs/OPERATIONS.md)",
		0, 1, 64, func(c *Config, n int64) { c.Cluster.NodeID = int32(n) })
	v.def = "unset, a single gateway"
	return v
}

func readCluster(c *Config, value string) string {
	if len(value) > maxClusterName {
		return "too long"
	}
	for _, r := range value {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		default:
			return "holds a character that no cluster's name may have"
		}
	}
	c.Cluster.Name = value
	return ""
}

// clusterConflicts finds what a node cannot run with.
func (c *Config) clusterConflicts(set map[string]bool, check func(bad bool, variable, reason string, args ...any)) {
	node := c.Cluster.NodeID != 0
	check(c.Cluster.Name != "" && !node && !set["QUEEN_KAFKA_NODE_ID"], "QUEEN_KAFKA_CLUSTER",
		"set while QUEEN_KAFKA_NODE_ID is unset: a single gateway belongs to no cluster of nodes")
	check(c.Cluster.TTL < heartbeatsMin*c.Cluster.Heartbeat, "QUEEN_KAFKA_CLUSTER_TTL_MS",
		"%d is below %d times QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS (%d): a node would be taken for dead between two heartbeats; defaults: 10000 and 2000",
		c.Cluster.TTL.Milliseconds(), heartbeatsMin, c.Cluster.Heartbeat.Milliseconds())
	if !node {
		return
	}
	check(c.Token.IsZero() && !set["QUEEN_TOKEN"], "QUEEN_TOKEN",
		"required with QUEEN_KAFKA_NODE_ID: the registry of nodes is kept at the cell with it")
	check(c.Advertised.SNI, "QUEEN_KAFKA_ADVERTISED_ADDR",
		"%s cannot be told to the clients of other nodes: with QUEEN_KAFKA_NODE_ID every node needs a host:port of its own", c.Advertised)
	check(c.Cluster.Heartbeat <= 0, "QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS", "%v is no time; default: 2000", c.Cluster.Heartbeat)
}
