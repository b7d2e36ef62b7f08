package edge

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/cluster"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// registry is where nodes find each other: rows of the cell, kept with the
// gateway's own token (kafka-surface §11, cell-http §4.8).
type registry struct {
	cell   *proxyclient.Client
	verify *tenancy.Verifier[[]proxyclient.Queue]
	claim  tenancy.Claim
	prefix string // of the rows' keys
	self   cluster.Member
	since  int64 // ms
	ttl    int64 // seconds

	scope  tenancy.Scope // once the cell has proved it; used by one goroutine
	proved bool
}

// maxNodes is how many rows are read: as many as there are ids.
const maxNodes = 64

// nodeRow is a row's value.
type nodeRow struct {
	NodeID      int32  `json:"nodeId"`
	Host        string `json:"host"`
	Port        int32  `json:"port"`
	Incarnation int64  `json:"incarnation"`
	Since       int64  `json:"since"`
	Version     string `json:"version"`
}

func (r *registry) key() string { return r.prefix + strconv.Itoa(int(r.self.ID)) }

// own is the scope of the gateway's token.
func (r *registry) own(ctx context.Context) (tenancy.Scope, error) {
	if !r.proved {
		proof, err := r.verify.Verify(ctx, r.claim)
		if err != nil {
			return r.scope, err
		}
		r.scope, r.proved = proof.Scope, true
	}
	return r.scope, nil
}

var errRegistryAnswer = errors.New("the cell's answer is not one result for each operation")

// Exchange implements cluster.Store.
func (r *registry) Exchange(ctx context.Context, c cluster.Call) (cluster.Answer, error) {
	var out cluster.Answer
	scope, err := r.own(ctx)
	if err != nil {
		return out, err
	}
	var ops []proxyclient.KVOp
	if c.Put {
		value, err := json.Marshal(nodeRow{r.self.ID, r.self.Host, r.self.Port, r.self.Incarnation, r.since, version()})
		if err != nil {
			return out, err
		}
		ops = append(ops, proxyclient.KVOp{
			Op: proxyclient.KVPut, Key: r.key(), Value: value, TTLSeconds: r.ttl, Expect: proxyclient.ExpectVersion(c.Expect),
		})
	}
	ops = append(ops, proxyclient.KVOp{Op: proxyclient.KVGetPrefix, Prefix: r.prefix, Limit: maxNodes})
	res, err := r.cell.KV(ctx, scope, ops)
	if err != nil {
		return out, err
	}
	if len(res) != len(ops) {
		return out, errRegistryAnswer
	}
	if c.Put {
		out = verdict(&res[0])
	}
	for _, row := range res[len(res)-1].Rows {
		key, err := strconv.ParseInt(strings.TrimPrefix(row.Key, r.prefix), 10, 32)
		if m, ok := memberOf(row.Value); ok && err == nil {
			out.Rows = append(out.Rows, cluster.Row{Key: int32(key), Member: m})
		}
	}
	return out, nil
}

// Remove implements cluster.Store.
func (r *registry) Remove(ctx context.Context, version int64) (cluster.Answer, error) {
	scope, err := r.own(ctx)
	if err != nil {
		return cluster.Answer{}, err
	}
	res, err := r.cell.KV(ctx, scope, []proxyclient.KVOp{
		{Op: proxyclient.KVDelete, Key: r.key(), Expect: proxyclient.ExpectVersion(version)},
	})
	if err != nil {
		return cluster.Answer{}, err
	}
	if len(res) != 1 {
		return cluster.Answer{}, errRegistryAnswer
	}
	return verdict(&res[0]), nil
}

func verdict(res *proxyclient.KVResult) cluster.Answer {
	a := cluster.Answer{Applied: res.Applied, Version: res.Version}
	if !res.Applied {
		a.Winner, _ = memberOf(res.Value)
	}
	return a
}

// memberOf reads a row's value. One without an address is nobody that a client
// could dial.
func memberOf(value []byte) (cluster.Member, bool) {
	var row nodeRow
	if err := json.Unmarshal(value, &row); err != nil || row.Host == "" || row.Port < 1 || row.Port > 65535 {
		return cluster.Member{}, false
	}
	return cluster.Member{ID: row.NodeID, Host: row.Host, Port: row.Port, Incarnation: row.Incarnation}, true
}

// newNode makes this gateway a node of a cluster; nil in single mode.
func (s *Server) newNode(cfg *config.Config, cell *proxyclient.Client) *cluster.Node {
	if cfg.Cluster.NodeID == 0 {
		return nil
	}
	self := cluster.Member{ID: cfg.Cluster.NodeID, Host: cfg.Advertised.Host, Port: cfg.Advertised.Port, Incarnation: newIncarnation()}
	return cluster.New(cluster.Config{
		Cluster: cfg.Cluster.ID(), Self: self,
		Heartbeat: cfg.Cluster.Heartbeat, TTL: cfg.Cluster.TTL, Clock: s.clock,
		Store: &registry{
			cell: cell, verify: s.verify, claim: tenancy.NewClaim(cfg.Token, ""),
			prefix: "qk:node:" + cfg.Cluster.ID() + ":", self: self, since: s.clock().UnixMilli(),
			// Rounded up: a row must not run out before this node knows that it did.
			ttl: int64((cfg.Cluster.TTL + time.Second - 1) / time.Second),
		},
		Release: s.releaseGroups,
		Tell:    s.tellNode,
	})
}

// newIncarnation is random, and exact as a JSON number everywhere.
func newIncarnation() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.LittleEndian.Uint64(b[:])>>12) + 1
}

// fence is what keeps commits of nodes apart; nil in single mode.
func (s *Server) fence(cfg *config.Config) *offsets.Fence {
	if s.node == nil {
		return nil
	}
	return &offsets.Fence{Node: cfg.Cluster.NodeID, Incarnation: s.node.Incarnation(), Confirm: s.node.Confirm}
}

// releaseGroups lets go of the groups that other nodes coordinate. Who waits in
// one is answered what a request would be that came now: 16 where the view has
// another coordinator, 15 where this node coordinates nothing.
func (s *Server) releaseGroups(v *cluster.View, all bool) {
	idle := !v.Coordinates(s.clock())
	n := s.groups.Release(func(id string) *kerr.Error {
		switch own := v.Owns(id); {
		case all && (idle || own):
			return kerr.CoordinatorNotAvailable
		case !own:
			return kerr.NotCoordinator
		}
		return nil
	})
	if n > 0 {
		s.log.Info("groups are let go: other nodes coordinate them", zap.Int("groups", n))
	}
}

// tellNode writes what happens to this node. A registry that is away is an error
// that ends by itself; an id that is lost needs somebody.
func (s *Server) tellNode(n cluster.Notice, detail string) {
	tell := s.log.Info
	switch n {
	case cluster.Away, cluster.IDLost:
		tell = s.log.Error
	case cluster.Waiting, cluster.Expired:
		tell = s.log.Warn
	case cluster.Claimed, cluster.Back, cluster.Departing:
	}
	fields := []zap.Field{zap.Int32("node_id", s.cfg.Cluster.NodeID), zap.String("cluster", s.cfg.Cluster.ID())}
	if detail != "" {
		fields = append(fields, zap.String("detail", detail))
	}
	tell(n.String(), fields...)
}

// runNode keeps the node's row. A live twin ends the process: leave is called
// with why.
func (s *Server) runNode(ctx context.Context, leave context.CancelCauseFunc, done chan<- struct{}) {
	defer close(done)
	if s.node == nil {
		return
	}
	if err := s.node.Run(ctx); err != nil {
		leave(err)
	}
}

// nodesSeen is how many nodes this one knows of, itself included.
func (s *Server) nodesSeen() int {
	if s.node == nil {
		return 1
	}
	return len(s.node.View().Members)
}

// coordinates reports whether groups are coordinated here now.
func (s *Server) coordinates() bool { return s.node == nil || s.node.Coordinates() }
