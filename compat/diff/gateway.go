package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/compat/faults/window"
	"github.com/queen-mq/queen-edge/edge"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell"
	"github.com/queen-mq/queen-edge/internal/cell/control"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// gateway is queen-edge and an embedded cell in this process, without TLS and
// SASL, as the Apache Kafka beside it.
type gateway struct {
	port int
	cell window.Cell
	end  context.CancelFunc
	done []chan error
}

func startGateway(dir string) (*gateway, error) {
	c, err := cell.Open(cell.Config{Dir: dir, SharedHosts: []string{"127.0.0.1"}})
	if err != nil {
		return nil, err
	}
	text, err := makeToken(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	cellAt, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	ctx, end := context.WithCancel(context.Background())
	g := &gateway{end: end, cell: window.Cell{URL: "http://" + cellAt.Addr().String(), Token: text}}
	g.start(func() error { return errors.Join(c.Serve(ctx, cellAt), c.Close()) })

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, g.stop())
	}
	g.port = ln.Addr().(*net.TCPAddr).Port
	cfg := config.Defaults()
	cfg.URL = g.cell.URL
	cfg.Advertised = config.Addr{Host: "localhost", Port: int32(g.port)}
	cfg.DefaultPartitions = 4
	cfg.Group.JoinDelay = 0
	cfg.SASL, cfg.Token = nil, tenancy.NewSecret(text)
	if err := cfg.Validate(); err != nil {
		return nil, errors.Join(err, ln.Close(), g.stop())
	}
	client, err := proxyclient.New(proxyclient.Config{URL: cfg.URL})
	if err != nil {
		return nil, errors.Join(err, ln.Close(), g.stop())
	}
	server := edge.New(edge.Options{Config: cfg, Cell: client, Log: zap.NewNop()})
	g.start(func() error {
		defer client.Close()
		return server.Serve(ctx, ln)
	})
	return g, nil
}

func makeToken(c *cell.Cell) (string, error) {
	limits := control.Overrides{"max_batch_items": json.RawMessage("100000")}
	if _, err := c.Control().CreateCluster(control.NewCluster{Slug: "acme", Overrides: limits}); err != nil {
		return "", err
	}
	scopes, err := control.ParseScopes("produce", "consume", "admin", "read")
	if err != nil {
		return "", err
	}
	text, _, err := c.Control().CreateKey(control.NewKey{Cluster: "acme", Scopes: scopes})
	return text, err
}

// start runs a part until the gateway is stopped.
func (g *gateway) start(serve func() error) {
	done := make(chan error, 1)
	g.done = append(g.done, done)
	go func() { done <- serve() }()
}

func (g *gateway) stop() error {
	g.end()
	var errs []error
	for i := len(g.done) - 1; i >= 0; i-- {
		errs = append(errs, <-g.done[i])
	}
	return errors.Join(errs...)
}

func (g *gateway) side() side { return side{name: "ours", port: g.port, cell: g.cell} }
