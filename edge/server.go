package edge

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/audit"
	"github.com/queen-mq/queen-edge/edge/brake"
	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/cluster"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/group"
	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/edge/session"
	"github.com/queen-mq/queen-edge/edge/trace"
	"github.com/queen-mq/queen-edge/edge/turn"
	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
	"github.com/queen-mq/queen-edge/tlsconf"
)

// Options are what a Server is made of.
type Options struct {
	Config config.Config
	Cell   *proxyclient.Client
	Audit  *audit.Log       // nil: none
	Traces *trace.Tracer    // nil: none
	TLS    *tlsconf.Store   // nil: a plaintext listener; Serve looks after its files
	Log    *zap.Logger      // nil: none
	Clock  func() time.Time // nil: time.Now
}

// Server serves one listener for all tenants.
type Server struct {
	cfg      config.Config
	tls      *tlsconf.Store
	shakes   [2]atomic.Int64 // TLS handshakes that ended well: full ones, and resumed ones
	log      *zap.Logger
	sampled  *zap.Logger // for what clients cause
	clock    func() time.Time
	handlers *api.Handlers
	groups   *group.Coordinator
	txns     *txn.Coordinator
	offsets  *offsets.Store
	node     *cluster.Node // of several; nil: this gateway is alone
	verify   *tenancy.Verifier[[]proxyclient.Queue]

	conns    *tenancy.Ceiling // connections that have logged in
	inFlight *tenancy.Ceiling // undecoded request bytes, weighted
	limits   *limits          // of each tenant
	turns    *turn.Line       // between tenants
	door     *door
	frames   wire.Frames
	answers  wire.Pool
	writers  wire.Writers
	readers  readerPool
	accepted atomic.Int64
	closed   closeLog
	logins   logins
	brakes   *brake.Brakes
	metrics  *metrics
	audit    *audit.Log    // nil: none
	traces   *trace.Tracer // nil: none
	watch    *watch
	ready    atomic.Bool    // new connections are welcome
	draining atomic.Bool    // Serve has been told to end
	wg       sync.WaitGroup // connections
}

// New makes a Server. The configuration has been validated.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	cfg := o.Config
	reserve := cfg.TenantReserve
	if len(cfg.SASL) == 0 {
		reserve = 0 // one tenant only: there is nobody to keep room for
	}
	s := &Server{
		cfg:      cfg,
		tls:      o.TLS,
		log:      o.Log,
		audit:    o.Audit,
		traces:   o.Traces,
		sampled:  api.Sampled(o.Log),
		clock:    o.Clock,
		conns:    tenancy.NewCeiling(int64(cfg.MaxConnections), reserve).PerTenant(int64(cfg.Tenant.MaxConnections)),
		inFlight: tenancy.NewCeiling(int64(cfg.Limits.InFlightBytes), reserve).PerTenant(cfg.Tenant.MaxInFlightBytes),
		limits:   newLimits(&cfg),
		turns:    turn.New(leastTurns*runtime.GOMAXPROCS(0), reserve),
		door:     newDoor(cfg.MaxConnections),
	}
	s.closed.log, s.closed.clock = o.Log, o.Clock
	s.metrics = newMetrics(s)
	o.Cell.Observe(s.called)
	s.brakes = brake.New(s.brakeConfig())
	s.verify = tenancy.NewVerifier[[]proxyclient.Queue](o.Cell, tenancy.VerifierConfig{
		Clock: o.Clock, SuccessLife: cfg.AuthCache, Refused: api.Refuses, Identities: cfg.Limits.IdentityEntries, Gate: s.brakes,
	})
	s.watch = newWatch(cfg.Reverify, reserve, o.Clock, s.verify.Revoked, s.sampled)
	s.groups = group.New(group.Config{
		JoinDelay:  cfg.Group.JoinDelay,
		MinSession: cfg.Group.MinSessionTimeout, MaxSession: cfg.Group.MaxSessionTimeout,
		MaxMembers: cfg.Limits.GroupMembers, MaxBytes: cfg.Limits.GroupBytes,
		Groups: tenancy.NewCeiling(int64(cfg.Limits.Groups), reserve),
		Bytes:  tenancy.NewCeiling(cfg.Limits.GroupsBytes, reserve),
		Twins:  s.warnOfTwins,
		Clock:  o.Clock,
	})
	s.txns = txn.New(txn.Config{
		Store: api.NewTxnStore(o.Cell),
		Limits: txn.Limits{
			Bytes: cfg.Txn.MaxBytes, Records: cfg.Txn.MaxRecords,
			Body: cfg.Limits.CommitBody, Partitions: cfg.Limits.CommitPartitions,
		},
		Open:        tenancy.NewCeiling(int64(cfg.Txn.MaxOpen), reserve),
		Staged:      tenancy.NewCeiling(cfg.Txn.MaxStagedBytes, reserve),
		Incarnation: o.Clock().UnixMilli(),
		Clock:       o.Clock,
	})
	s.node = s.newNode(&cfg, o.Cell)
	s.offsets = offsets.New(offsets.Config{
		Cell: o.Cell, Fence: s.fence(&cfg),
		Waiting: tenancy.NewCeiling(cfg.Limits.WaitingCommits, reserve), Clock: o.Clock, Log: o.Log,
		Committed: s.metrics.commit,
	})
	s.handlers = api.New(api.Config{
		Cell: o.Cell,
		Catalog: catalog.New(o.Cell, catalog.Config{
			DefaultPartitions: cfg.DefaultPartitions, MaxPartitions: cfg.MaxPartitions,
			MaxTenants: cfg.Limits.CatalogEntries, MaxCreates: cfg.Limits.AutoCreates,
			DedupWindow: cfg.DedupWindow,
			Clock:       o.Clock, Log: o.Log,
		}),
		Offsets: s.offsets,
		Groups:  s.groups,
		Cluster: s.node,
		Verify:  s.verify,
		Sessions: session.NewStore(session.Config{
			Count: tenancy.NewCeiling(int64(cfg.Limits.FetchSessions), reserve),
			Bytes: tenancy.NewCeiling(cfg.Limits.FetchSessionBytes, reserve),
			Idle:  cfg.Limits.FetchSessionIdle, Clock: o.Clock, NewID: api.SessionID,
		}),
		Txns:      s.txns,
		Producers: tenancy.NewCeiling(int64(cfg.MaxProducerStates), reserve),
		Inflated:  tenancy.NewCeiling(cfg.Limits.InflatedBytes, reserve),
		Answers:   tenancy.NewCeiling(cfg.Limits.AnswerBytes, reserve),
		RoomWait:  cfg.Limits.RoomWait,

		Served:        s.metrics.request,
		TxnMaxTimeout: cfg.Txn.MaxTimeout,
		SessionLife:   cfg.SessionLife,

		Host: cfg.Advertised.Host, Port: cfg.Advertised.Port,
		Coalesce:          cfg.Coalesce,
		DecompressedBytes: cfg.Limits.DecompressedBytes, ProduceRecords: cfg.Limits.ProduceRecords,
		FetchResponse: cfg.Limits.FetchResponse,
		MetadataNames: cfg.Limits.MetadataNames, MetadataPartitions: cfg.Limits.MetadataPartitions,
		Admin: api.Admin{
			Creates: cfg.Limits.AutoCreates, Alters: cfg.Limits.AlteredTopics, Describes: cfg.Limits.DescribedConfigs,
			SizeCalls:     cfg.Limits.SizeCalls,
			MaxPartitions: cfg.MaxPartitions, DefaultPartitions: cfg.DefaultPartitions,
			Group: api.GroupConfig{
				JoinDelay: cfg.Group.JoinDelay, MinSession: cfg.Group.MinSessionTimeout, MaxSession: cfg.Group.MaxSessionTimeout,
			},
			TxnMaxTimeout: cfg.Txn.MaxTimeout, Idle: cfg.Limits.Idle,
		},
		Clock: o.Clock,
		Log:   o.Log,
	})
	return s
}

// Stats are the counters of what clients sent.
func (s *Server) Stats() *api.Stats { return &s.handlers.Stats }

// warnOfTwins tells of a group that may be one tenant's in two halves (B4).
func (s *Server) warnOfTwins(a, b tenancy.ID) {
	s.sampled.Warn("a group id is used by two tenants, and the cell names no cluster for one of them: "+
		"if they are one, its members do not see each other, and partitions are read twice",
		zap.Stringer("tenant", a), zap.Stringer("other", b))
}

// Groups are the consumer groups, counted.
func (s *Server) Groups() group.Stats { return s.groups.Stats() }

// Closed is how many connections have ended for a reason.
func (s *Server) Closed(r wire.Reason) int64 { return s.closed.count(r) }

// Accepted is how many connections have come: each is open, or has ended for a
// reason.
func (s *Server) Accepted() int64 { return s.accepted.Load() }

// Connections is how many connections there are now.
func (s *Server) Connections() int { return s.door.count() }

// acceptPause is how long accepting rests after an error such as a full
// descriptor table.
const acceptPause = 50 * time.Millisecond

// Serve accepts until ctx ends, then drains: after the drain delay nothing new is
// accepted, requests already received are answered, and what is left after the
// grace, which begins then, is cut. It returns when every connection has ended, and
// closes ln. A node whose id another process has ends by itself, with a
// *cluster.TwinError.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.ready.Store(true)
	// Connections outlive ctx by the drain grace.
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	open, shut := context.WithCancel(life)
	shutDown := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { s.lastCall(life, shut, ln); close(shutDown) })
	defer func() {
		if !stop() {
			<-shutDown
		}
	}()

	swept, watched, looked, paced := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go s.lookAfterCertificates(life, looked)
	go s.sweepTxns(life, swept)
	go s.watch.run(life, watched)
	go s.runTurns(ctx, paced)
	member, depart := context.WithCancel(ctx)
	defer depart()
	departed := make(chan struct{})
	go s.runNode(member, end, departed)
	err := s.accept(open, life, ln)
	s.ready.Store(false)
	depart()
	s.drain(cut)
	cut()
	<-swept
	<-watched
	<-paced
	<-departed
	<-looked
	s.groups.Close()
	if twin := (*cluster.TwinError)(nil); errors.As(context.Cause(ctx), &twin) {
		return twin
	}
	if errors.Is(err, net.ErrClosed) && ctx.Err() != nil {
		return nil
	}
	return err
}

// lastCall begins the drain. The listener stays for as long as balancers may need
// to see that nobody is welcome any more (B7), and send nobody here: who waits in
// the kernel's queue when a listener closes is cut off.
func (s *Server) lastCall(life context.Context, shut context.CancelFunc, ln net.Listener) {
	s.ready.Store(false) // first: a balancer may look before anything else happens
	s.draining.Store(true)
	delay := time.NewTimer(s.cfg.DrainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-life.Done(): // the listener has ended by itself
	}
	shut()
	_ = ln.Close()
}

func (s *Server) accept(ctx, life context.Context, ln net.Listener) error {
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			s.start(life, nc)
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return err
		default:
			s.log.Warn("accept failed", zap.Error(err))
			pause := time.NewTimer(acceptPause)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
		}
	}
}

// start gives a connection its goroutine, or closes it at once when the process
// is full: a socket left in the backlog would look like a hang.
func (s *Server) start(life context.Context, nc net.Conn) {
	s.accepted.Add(1)
	keepAlive(nc)
	c := s.newConn(life, nc)
	oldest, ok := s.door.enter(c)
	if !ok {
		c.stopEntry()
		_ = nc.Close()
		s.closed.add(wire.CapacityProcess, nil, nil)
		return
	}
	if oldest != nil {
		oldest.end(wire.Closing(wire.CapacityUnproved, nil))
	}
	s.wg.Add(1)
	go c.serve()
}

// Dead peers are found, and idle connections kept alive through middleboxes: of
// common ones the first forgets a connection after 240 s of silence.
const (
	keepAliveIdle     = time.Minute
	keepAliveInterval = 15 * time.Second
	keepAliveCount    = 4
)

func keepAlive(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
		})
	}
}

// drain asks every connection to end between requests, soon cuts those that have
// not logged in, and cuts what remains after the grace.
func (s *Server) drain(cut context.CancelFunc) {
	for _, c := range s.door.all() {
		c.drain()
	}
	done := make(chan struct{})
	go s.awaitConns(done)
	strangers, grace := time.NewTimer(s.cfg.Limits.LoginGrace), time.NewTimer(s.cfg.DrainGrace)
	defer strangers.Stop()
	defer grace.Stop()
	for over := false; !over; {
		select {
		case <-done:
			return
		case <-strangers.C:
			s.cutAll(func(c *conn) bool { return !c.loggedIn.Load() })
		case <-grace.C:
			over = true
		}
	}
	s.cutAll(func(*conn) bool { return true })
	cut()
	<-done
}

// cutAll ends the connections that which names.
func (s *Server) cutAll(which func(*conn) bool) {
	endAll(slices.DeleteFunc(s.door.all(), func(c *conn) bool { return !which(c) }), wire.Draining)
}

// sweepTxns ends transactions whose time has run out, until the last connection
// is gone.
func (s *Server) sweepTxns(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	s.txns.Run(ctx)
}

func (s *Server) awaitConns(done chan<- struct{}) {
	s.wg.Wait()
	close(done)
}
