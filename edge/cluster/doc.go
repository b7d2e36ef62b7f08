// Package cluster is several gateways that share the work on groups, each of
// them a node with an address of its own (kafka-surface §11). A node keeps a row
// in a registry at the cell, renews it with every heartbeat, and reads those of
// the others. Who owns a group or leads a partition is computed from the nodes
// that are there, by highest random weight: all who see the same nodes agree.
//
// State is pure: step(now, event) []effect. Node is the thin loop around it. A
// node that has not renewed its row for as long as the row lives coordinates
// nothing, before others can see it gone.
package cluster
