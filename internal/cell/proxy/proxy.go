package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
	"github.com/queen-mq/queen-edge/internal/cell/control"
	"github.com/queen-mq/queen-edge/internal/cell/spare"
)

// DefaultMaxBodyBytes is the cap of a request body (cell-http §5.3).
const DefaultMaxBodyBytes = 16 << 20

// DefaultBodyTimeout is how long a client may take to send a body.
const DefaultBodyTimeout = 30 * time.Second

// DefaultUpstreamTimeout is what is left of a full long poll plus 5 s
// (cell-http §5.3).
const DefaultUpstreamTimeout = 35 * time.Second

// writeTimeout is how long a client may take to read one flushed part of an
// answer.
const writeTimeout = 30 * time.Second

// Broker is what the proxy needs of the store behind it.
type Broker interface {
	Queues(t broker.Tenant) []broker.Queue
	Queue(t broker.Tenant, name string) (broker.Queue, bool)
	PartitionSizes(t broker.Tenant, queue string) (map[string]int64, bool)
	Configure(ctx context.Context, t broker.Tenant, name string, change func(*broker.Options) error) (broker.Queue, error)
	Delete(ctx context.Context, t broker.Tenant, name string) (existed bool, err error)
	Push(ctx context.Context, t broker.Tenant, items []broker.PushItem, into []broker.PushResult) ([]broker.PushResult, error)
	Fetch(ctx context.Context, t broker.Tenant, r broker.FetchRequest) ([]broker.FetchResult, error)
	OffsetsForTimes(ctx context.Context, t broker.Tenant, q []broker.TimeQuery) ([]broker.TimeResult, error)
	KV(ctx context.Context, t broker.Tenant, ops []broker.KVOp) ([]broker.KVResult, error)
	Transaction(ctx context.Context, t broker.Tenant, pushes []broker.PushItem, kv []broker.KVOp, acks ...broker.Ack) (broker.TxnResult, error)
	KVStats(t broker.Tenant) broker.KVUsage
	MaxTxnKVOps() int
	Groups(t broker.Tenant) ([]broker.GroupRow, error)

	Pop(ctx context.Context, t broker.Tenant, r broker.PopRequest) (broker.PopResult, error)
	Ack(ctx context.Context, t broker.Tenant, acks []broker.Ack) ([]broker.AckResult, error)
	Renew(t broker.Tenant, id broker.LeaseID) broker.Renewal
	DeadLetters(t broker.Tenant, q broker.DeadQuery) (page []broker.Dead, total int, err error)
	Depth(t broker.Tenant, queue, group string) (broker.Depth, bool)
	DeleteGroup(ctx context.Context, t broker.Tenant, group, queue string, forget bool) (partitions int, err error)
	SeekGroup(ctx context.Context, t broker.Tenant, group, queue string, to broker.Seek) (partitions int, err error)
	MoveSubscription(ctx context.Context, t broker.Tenant, group string, since time.Time) (queues int, err error)
}

// Config says what a Proxy fronts. Control and Broker are required.
type Config struct {
	Control *control.Store
	Broker  Broker
	Logger  *zap.Logger // nil: silent

	// SharedHosts are full host names that name no cluster: the key does.
	SharedHosts []string
	// DefaultCluster is the slug unknown hosts fall back to; empty: none.
	DefaultCluster string
	// MaxBodyBytes caps a request body; 0: DefaultMaxBodyBytes.
	MaxBodyBytes int64
	// BodyTimeout is how long a body may take to arrive; 0: DefaultBodyTimeout.
	BodyTimeout time.Duration
	// UpstreamTimeout is how long the broker may take, a parked fetch too;
	// 0: DefaultUpstreamTimeout.
	UpstreamTimeout time.Duration

	// Clock is what buckets, months and key ends go by; nil: the wall clock.
	Clock func() time.Time
	// Shadow only logs what it would refuse over rates, registry and retention
	// (cell-http §5.4: enforcement off). What is hard there stays hard.
	Shadow bool
	// Usage keeps metering rows; nil: nobody does.
	Usage UsageSink
}

// Proxy is the cell's HTTP front.
type Proxy struct {
	control        *control.Store
	broker         Broker
	log            *zap.Logger
	shared         map[string]bool // normalised names
	defaultCluster string
	maxBody        int64
	bodyTimeout    time.Duration
	patience       time.Duration // with the broker
	clock          func() time.Time
	shadow         bool
	usage          *usage
	capabilities   string // of the x-queen-capabilities header; empty: none
	counters       Counters

	accountsMu sync.RWMutex        // guards accounts
	accounts   map[string]*account // by cluster id

	parked atomic.Int64 // waiting pops of all clusters

	// steps is the pipeline of cell-http §5.1, in this listener's order.
	steps []step

	// draining ends when parked polls are to answer with what there is. It is
	// kept here, and not handed down, because it outlives every request.
	draining context.Context
	drain    context.CancelFunc

	bodies  spare.List[bodyBuffer]
	answers sync.Pool // of *answer
	pushes  spare.List[pushBody]
	fetches sync.Pool // of *fetchBody
	batches sync.Pool // of *kvBody
}

// step is one stage of the pipeline; a refusal ends the request.
type step struct {
	name string
	run  func(*Proxy, *call) *refusal
}

// call is one request on its way through the steps.
type call struct {
	w          http.ResponseWriter
	r          *http.Request
	target     target
	sharedHost bool
	cluster    *control.View // by host, then by key; nil while unknown
	grant      control.Grant
	status     int // what was answered

	// held is the body of a KV batch, which decides what the request is.
	held *bodyBuffer
	kv   *kvBody

	upstream context.Context // of calls to the broker, made at the first
	cancel   context.CancelFunc

	// For the meter: bytes of body and answer, and messages that count.
	received, sent, msgs int64
}

// tenant is the broker's name of the proved cluster: the only source of a
// broker.Tenant here.
func (c *call) tenant() broker.Tenant { return broker.Tenant(c.grant.Cluster.BrokerTenant) }

// New checks the configuration and builds the pipeline.
func New(cfg Config) (*Proxy, error) {
	if cfg.Control == nil || cfg.Broker == nil {
		return nil, errors.New("proxy: Control and Broker are required")
	}
	if cfg.MaxBodyBytes < 0 || cfg.BodyTimeout < 0 || cfg.UpstreamTimeout < 0 {
		return nil, fmt.Errorf("proxy: MaxBodyBytes %d, BodyTimeout %v or UpstreamTimeout %v is negative",
			cfg.MaxBodyBytes, cfg.BodyTimeout, cfg.UpstreamTimeout)
	}
	cfg.MaxBodyBytes = cmp.Or(cfg.MaxBodyBytes, DefaultMaxBodyBytes)
	cfg.BodyTimeout = cmp.Or(cfg.BodyTimeout, DefaultBodyTimeout)
	cfg.UpstreamTimeout = cmp.Or(cfg.UpstreamTimeout, DefaultUpstreamTimeout)
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	meter, err := newUsage(cfg.Usage, cfg.Clock())
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{
		control:        cfg.Control,
		broker:         cfg.Broker,
		log:            cfg.Logger,
		shared:         make(map[string]bool, len(cfg.SharedHosts)),
		defaultCluster: cfg.DefaultCluster,
		maxBody:        cfg.MaxBodyBytes,
		bodyTimeout:    cfg.BodyTimeout,
		patience:       cfg.UpstreamTimeout,
		clock:          cfg.Clock,
		shadow:         cfg.Shadow,
		usage:          meter,
		accounts:       make(map[string]*account),
	}
	if n := cfg.Broker.MaxTxnKVOps(); n > broker.DefaultTxnKVOps {
		p.capabilities = "txn-kv=" + strconv.Itoa(n)
	}
	p.draining, p.drain = context.WithCancel(context.Background())
	for _, host := range cfg.SharedHosts {
		p.shared[normaliseHost(host)] = true
	}
	p.steps = pipeline(len(p.shared) > 0)
	p.Reconcile()
	return p, nil
}

// pipeline is the order of cell-http §5.1. With shared names, what would tell
// a stranger about a cluster waits until the key is proved.
func pipeline(sharedNames bool) []step {
	if sharedNames {
		return []step{
			{"host", (*Proxy).resolveHost},
			{"classify", (*Proxy).blockedRoutes},
			{"authenticate", (*Proxy).authenticate},
			{"status", (*Proxy).statusGate},
			{"batch", (*Proxy).classifyBatch},
			{"plan", (*Proxy).planGate},
			{"authorize", (*Proxy).authorize},
			{"rate", (*Proxy).requestRate},
			{"answer", (*Proxy).answer},
		}
	}
	return []step{
		{"host", (*Proxy).resolveHost},
		{"status", (*Proxy).statusGate},
		{"classify", (*Proxy).blockedRoutes},
		{"batch", (*Proxy).classifyBatch},
		{"plan", (*Proxy).planGate},
		{"authenticate", (*Proxy).authenticate},
		{"authorize", (*Proxy).authorize},
		{"rate", (*Proxy).requestRate},
		{"answer", (*Proxy).answer},
	}
}

// Counters returns the counts of requests by route.
func (p *Proxy) Counters() *Counters { return &p.counters }

// Drain makes parked polls answer at once with what there is, now and from
// here on: what a server calls before it waits for its requests.
func (p *Proxy) Drain() { p.drain() }

// ServeHTTP answers one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	c := &call{w: w, r: r, target: classify(r.Method, r.URL.EscapedPath())}
	p.counters.add(c.target.route)
	p.limitBody(c)
	setHeader(w, "Content-Type", "application/json")
	setHeader(w, "X-Queen-Request-Id", requestID())
	failed := "none"
	switch c.target.route {
	case RouteHealth:
		p.health(c)
	case RouteMe:
		if f := p.me(c); f != nil {
			p.refuse(c, f)
		}
	default:
		failed = p.run(c)
	}
	// Never the path, a header or the query: they may hold a credential.
	if entry := p.log.Check(zap.DebugLevel, "cell request"); entry != nil {
		entry.Write(zap.Stringer("route", c.target.route), zap.Int("status", c.status),
			zap.String("refused_at", failed), zap.String("cluster", c.slug()), zap.Duration("took", time.Since(start)))
	}
}

// run takes a call through the steps and names the one that refused it.
func (p *Proxy) run(c *call) string {
	defer p.letGo(c)
	for _, s := range p.steps {
		if f := s.run(p, c); f != nil {
			p.refuse(c, f)
			if f.broker {
				p.meter(c)
			}
			return s.name
		}
	}
	p.meter(c)
	return "none"
}

// letGo gives back what a call held on its way.
func (p *Proxy) letGo(c *call) {
	if c.cancel != nil {
		c.cancel()
	}
	if c.kv != nil {
		c.kv.reset()
		p.batches.Put(c.kv)
	}
	if c.held != nil {
		p.giveBack(c.held)
	}
}

// errUpstreamTimeout is why a call to the broker was given up.
var errUpstreamTimeout = errors.New("the broker took too long")

// ctx is what calls to the broker run under: the request's, for as long as the
// broker may take. The time begins when it is first asked for, which is after
// the body.
func (p *Proxy) ctx(c *call) context.Context {
	if c.upstream == nil {
		c.upstream, c.cancel = context.WithTimeoutCause(c.r.Context(), p.patience, errUpstreamTimeout)
	}
	return c.upstream
}

// unlessShadow is a refusal, or only a line of the log where nothing is
// enforced.
func (p *Proxy) unlessShadow(c *call, f *refusal) *refusal {
	if !p.shadow {
		return f
	}
	p.log.Info("not enforced", zap.String("cluster", c.cluster.Slug), zap.Stringer("route", c.target.route), zap.String("refusal", f.text))
	return nil
}

// slug names the proved cluster for the log.
func (c *call) slug() string {
	if c.grant.Cluster == nil {
		return ""
	}
	return c.grant.Cluster.Slug
}

// answer hands the request to its route.
func (p *Proxy) answer(c *call) *refusal {
	switch c.target.route {
	case RoutePush:
		return p.push(c)
	case RouteFetch:
		return p.fetch(c)
	case RouteOffsets:
		return p.offsets(c)
	case RouteQueues:
		return p.listQueues(c)
	case RouteQueue:
		return p.showQueue(c)
	case RouteSizes:
		return p.queueSizes(c)
	case RouteConfigure:
		return p.configure(c)
	case RouteDelete:
		return p.deleteQueue(c)
	case RouteKV:
		return p.keys(c)
	case RouteTransaction:
		return p.transaction(c)
	case RouteGroups:
		return p.listGroups(c)
	case RoutePop:
		return p.pop(c)
	case RouteAck:
		return p.ack(c)
	case RouteLease:
		return p.renew(c)
	case RouteDead:
		return p.deadLetters(c)
	case RouteDepth:
		return p.depth(c)
	case RouteGroupDelete:
		return p.deleteGroup(c)
	case RouteGroupSeek:
		return p.seekGroup(c)
	case RouteGroupSubscription:
		return p.moveSubscription(c)
	default:
		return p.noSuchRoute(c)
	}
}

// setHeader sets a header whose name is already canonical.
func setHeader(w http.ResponseWriter, name, value string) { w.Header()[name] = []string{value} }

// requestID names one request towards client and log.
func requestID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: it ends the process instead
	return hex.EncodeToString(id[:])
}
