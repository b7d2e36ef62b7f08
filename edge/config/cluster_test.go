package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCluster(t *testing.T) {
	c := read(t)
	if c.Cluster != (Cluster{Heartbeat: 2 * time.Second, TTL: 10 * time.Second}) || c.Cluster.ID() != "queen" {
		t.Errorf("without a node id: %+v, %s", c.Cluster, c.Cluster.ID())
	}
	c = read(t, "QUEEN_TOKEN", "t", "QUEEN_KAFKA_NODE_ID", " 64 ", "QUEEN_KAFKA_CLUSTER", "A.b_c-9",
		"QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS", "1000", "QUEEN_KAFKA_CLUSTER_TTL_MS", "3000")
	if c.Cluster != (Cluster{64, "A.b_c-9", time.Second, 3 * time.Second}) || c.Cluster.ID() != "A.b_c-9" {
		t.Errorf("%+v", c.Cluster)
	}
}

func TestClusterRefusals(t *testing.T) {
	node := func(pairs ...string) []string {
		return append([]string{"QUEEN_TOKEN", "t", "QUEEN_KAFKA_NODE_ID", "1"}, pairs...)
	}
	for _, test := range []struct {
		name           string
		env            []string
		variable, says string
	}{
		{"0 is the single gateway's id", []string{"QUEEN_TOKEN", "t", "QUEEN_KAFKA_NODE_ID", "0"}, "QUEEN_KAFKA_NODE_ID", "out of range; legal: 1–64"},
		{"65", []string{"QUEEN_TOKEN", "t", "QUEEN_KAFKA_NODE_ID", "65"}, "QUEEN_KAFKA_NODE_ID", "out of range"},
		{"a name as id", []string{"QUEEN_TOKEN", "t", "QUEEN_KAFKA_NODE_ID", "edge-1"}, "QUEEN_KAFKA_NODE_ID", "not a whole number"},
		{"without a token", []string{"QUEEN_KAFKA_NODE_ID", "1"}, "QUEEN_TOKEN", "required with QUEEN_KAFKA_NODE_ID"},
		{"a bad token", []string{"QUEEN_KAFKA_NODE_ID", "1", "QUEEN_TOKEN", "a b"}, "QUEEN_TOKEN", "no HTTP header"},
		{"a cluster without a node", []string{"QUEEN_KAFKA_CLUSTER", "c"}, "QUEEN_KAFKA_CLUSTER", "QUEEN_KAFKA_NODE_ID is unset"},
		{"a colon in the name", node("QUEEN_KAFKA_CLUSTER", "a:b"), "QUEEN_KAFKA_CLUSTER", "character"},
		{"a long name", node("QUEEN_KAFKA_CLUSTER", strings.Repeat("c", 65)), "QUEEN_KAFKA_CLUSTER", "too long"},
		{"a fast heartbeat", node("QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS", "499"), "QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS", "500–30000"},
		{"a slow heartbeat", node("QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS", "30001"), "QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS", "out of range"},
		{"a short life", node("QUEEN_KAFKA_CLUSTER_TTL_MS", "2999"), "QUEEN_KAFKA_CLUSTER_TTL_MS", "3000–120000"},
		{"a long life", node("QUEEN_KAFKA_CLUSTER_TTL_MS", "120001"), "QUEEN_KAFKA_CLUSTER_TTL_MS", "out of range"},
		{"below three heartbeats", node("QUEEN_KAFKA_CLUSTER_TTL_MS", "5999"), "QUEEN_KAFKA_CLUSTER_TTL_MS", "below 3 times QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS (2000)"},
		{"the same without a node", []string{"QUEEN_KAFKA_CLUSTER_TTL_MS", "5999"}, "QUEEN_KAFKA_CLUSTER_TTL_MS", "below 3 times"},
		{"beside replicas to come", node("QUEEN_KAFKA_REPLICAS", "shared"), "QUEEN_KAFKA_REPLICAS", "does not have this setting yet"},
		{"the dialled name", node("QUEEN_KAFKA_TLS_CERT", "/c", "QUEEN_KAFKA_TLS_KEY", "/k", "QUEEN_KAFKA_LANES", "a.example", advertised, "sni:9093"), advertised, "host:port of its own"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := FromLookup(lookup(test.env...))
			problems := Problems(err)
			if len(problems) != 1 || problems[0].Variable != test.variable || !strings.Contains(problems[0].Error(), test.says) {
				t.Errorf("%v, want %s alone, saying %q", err, test.variable, test.says)
			}
		})
	}
	if slices.Contains(unbuilt(), "QUEEN_KAFKA_NODE_ID") {
		t.Error("the node id is called a setting of later versions")
	}
}
