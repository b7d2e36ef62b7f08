package rig

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/ports"
	"github.com/queen-mq/queen-edge/edge"
	"github.com/queen-mq/queen-edge/edge/config"
)

// Node is a gateway that is one of several on a rig's cell. It goes on at its
// address when it is started again.
type Node struct {
	Server *edge.Server
	Addr   string // host:port
	Calls  *inject.Proxy

	r      *Rig
	change func(*config.Config)
	at     *ports.Port
	run    *service
}

// Heartbeats of the rig's nodes: quick, and a row lives long enough for a
// machine that is busy.
const (
	NodeHeartbeat = 200 * time.Millisecond
	NodeTTL       = 3 * time.Second
)

// WithNode makes the rig's own gateway node 1 of a cluster, whose registry is
// kept with one of the rig's keys.
func WithNode(registry string) func(*Options) {
	return func(o *Options) {
		o.Node, o.Registry = 1, registry
	}
}

// StartNode starts another gateway on the rig's cell, as a node of that id; change
// has the last word on its configuration, nil: none.
func (r *Rig) StartNode(tb testing.TB, id int32, change func(*config.Config)) *Node {
	tb.Helper()
	n := &Node{r: r, at: keepPort(tb)}
	n.change = func(cfg *config.Config) {
		cfg.Cluster.NodeID = id
		if change != nil {
			change(cfg)
		}
	}
	tb.Cleanup(func() { check(tb, n.run.end()) })
	n.Start(tb)
	return n
}

// Start starts a node that has ended.
func (n *Node) Start(tb testing.TB) {
	tb.Helper()
	ln := listen(tb, n.at)
	cfg := n.r.configure(tb, n.at.Number())
	proxy, err := inject.Start(anyPort, cfg.URL, inject.Plan{}, nil)
	check(tb, err)
	tb.Cleanup(func() {
		if n.Calls == proxy {
			check(tb, proxy.Close())
		}
	})
	if n.Calls != nil {
		check(tb, n.Calls.Close()) // of the life before
	}
	n.Calls, cfg.URL = proxy, proxy.URL
	n.change(&cfg)
	check(tb, cfg.Validate())
	n.Addr = cfg.Advertised.String()
	n.Server, n.run = n.r.serve(tb, cfg, ln)
}

// At is where the node listens, whatever it tells clients.
func (n *Node) At() string { return n.at.Addr() }

// Stop drains the node, which removes its row first.
func (n *Node) Stop(tb testing.TB) {
	tb.Helper()
	check(tb, n.run.end())
	n.run = nil
}

// Crash ends the node as a killed one ends: it cannot say anything to the cell
// any more, and its row stays.
func (n *Node) Crash(tb testing.TB) {
	tb.Helper()
	check(tb, n.Calls.Close())
	n.Calls = nil
	check(tb, n.run.end())
	n.run = nil
}

// Ended waits until the node has ended by itself, and returns why.
func (n *Node) Ended(tb testing.TB) error {
	tb.Helper()
	select {
	case err := <-n.run.done:
		n.run = nil
		return err
	case <-time.After(Patience):
		tb.Fatal("the node does not end")
		return nil
	}
}

// Seeds are the addresses of nodes, for a client.
func (r *Rig) Seeds(nodes ...*Node) kgo.Opt {
	seeds := []string{r.Addr}
	for _, n := range nodes {
		seeds = append(seeds, n.Addr)
	}
	return kgo.SeedBrokers(slices.Clone(seeds)...)
}

// Rig is the rig as clients see it that dial this node.
func (n *Node) Rig() *Rig {
	r := *n.r
	r.Addr, r.Gateway = n.Addr, n.Server
	return &r
}
