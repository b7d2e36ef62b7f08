package peer

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/queen-mq/queen-edge/compat/bench/load"
)

// The peers' ids.
const (
	Queen     = "queen-edge"
	KafkaTLS  = "kafka-ssl"
	KafkaSync = "kafka-ssl-sync"
	KafkaOpen = "kafka-plain"
	Bare      = "bare-tls"
)

// Peer is a running system.
type Peer interface {
	// Target is where a load goes.
	Target() load.Peer
	// Processes are its parts.
	Processes() []*Process
	// Stop ends them.
	Stop()
}

// Cell is a peer that has a cell behind it.
type Cell interface {
	// CellRequests is how many requests the cell has been sent so far, as it
	// meters them.
	CellRequests(ctx context.Context) (int64, error)
	// NewTokens makes tokens that nobody has used.
	NewTokens(ctx context.Context, n int) ([]string, error)
}

// Place is what peers are started with.
type Place struct {
	Dir      string // empty, for this peer alone
	Exe      string // queen-edge
	Self     string // this program, for the bare server
	Jars     string // of Apache Kafka
	Identity Identity
	Profiles bool // they are to be taken, where a peer has any
}

// StartPeer starts a peer by its id and waits until it answers.
func StartPeer(ctx context.Context, id string, at Place) (Peer, error) {
	switch id {
	case Queen:
		return startQueen(ctx, at)
	case KafkaTLS, KafkaSync, KafkaOpen:
		return startKafka(ctx, id, at)
	case Bare:
		return startBare(ctx, at)
	}
	return nil, fmt.Errorf("no peer %q", id)
}

// host is the name in the certificate, which every peer is dialled by.
const host = "localhost"

// freePort finds a port that nobody listens on at the moment.
func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// answers waits until somebody listens at addr.
func answers(ctx context.Context, p *Process, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return conn.Close()
		}
		if err := p.alive(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w\n%s", p.Name, err, p.tail())
		}
	}
}
