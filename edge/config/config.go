// Package config reads the environment into one struct. It is the only package
// that may look at the environment.
//
// An empty or blank variable is unset. A bad value is an error that names the
// variable, the value, the legal range and the default; nothing falls back to
// a default in silence, and a setting that this version does not have yet is
// refused instead of ignored. All problems are reported together, one a line,
// so that an operator fixes a deployment in one round.
//
// Ranges bind the environment only. A Config made in code may hold smaller
// ceilings than any operator could set; Validate checks what no gateway can run
// without.
package config

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Config is everything a gateway can be told. Take Defaults, or FromEnv, and
// change fields before the listener opens; nothing reads it back later.
type Config struct {
	URL   string         // QUEEN_URL: the cell's base URL, without a trailing slash
	Token tenancy.Secret // QUEEN_TOKEN: the gateway's own bearer; zero where it has none

	Addr       string // QUEEN_KAFKA_ADDR: host:port to listen on
	Advertised Addr   // QUEEN_KAFKA_ADVERTISED_ADDR: what clients are told to dial

	TLSCert    string // QUEEN_KAFKA_TLS_CERT: path of the default PEM chain; empty: none
	TLSKey     string // QUEEN_KAFKA_TLS_KEY: path of its PEM key
	TLSDir     string // QUEEN_KAFKA_TLS_DIR: path of a folder with a pair for each name; empty: none
	TLSTickets string // QUEEN_KAFKA_TLS_TICKET_KEYS: path of the file of session ticket keys; empty: the process's own

	Lanes       []string // QUEEN_KAFKA_LANES: names and patterns that are served; empty: every name
	DefaultLane string   // QUEEN_KAFKA_DEFAULT_LANE: the lane of who names none of them; empty: refused

	SASL           []sasl.Mechanism // QUEEN_KAFKA_SASL; empty: no login, every connection uses Token
	ForwardSNIHost bool             // QUEEN_KAFKA_FORWARD_SNI_HOST: the dialled name becomes the cell's Host
	LoginTimeout   time.Duration    // QUEEN_KAFKA_LOGIN_TIMEOUT_MS: accept to authenticated
	AuthCache      time.Duration    // QUEEN_KAFKA_AUTH_CACHE_MS: reuse of a successful login check; 0 is off
	Reverify       time.Duration    // QUEEN_KAFKA_REVERIFY_MS: between two checks of a credential with open connections
	SessionLife    time.Duration    // QUEEN_KAFKA_SESSION_LIFETIME_MS: of a login whose credential names no end; 0: none
	DrainDelay     time.Duration    // QUEEN_KAFKA_DRAIN_DELAY_MS: SIGTERM to the listener's end; 0: at once
	DrainGrace     time.Duration    // QUEEN_KAFKA_DRAIN_GRACE_MS: from then to exit

	ProxyProtocol    bool           // QUEEN_KAFKA_PROXY_PROTOCOL: connections begin with a PROXY header
	ProxyTrusted     []netip.Prefix // QUEEN_KAFKA_PROXY_TRUSTED: who may send one; IPv4 in its own form
	ConnectionMaxAge time.Duration  // QUEEN_KAFKA_CONNECTION_MAX_AGE_MS: of a connection, at most; 0: any

	AdminAddr  string         // QUEEN_KAFKA_ADMIN_ADDR: host:port of the side listener; empty: none
	AdminToken tenancy.Secret // QUEEN_KAFKA_ADMIN_TOKEN: the bearer its metrics ask for; zero: none
	AdminPprof bool           // QUEEN_KAFKA_ADMIN_PPROF: profiles at the side listener
	AuditLog   string         // QUEEN_KAFKA_AUDIT_LOG: stderr or a path; empty: none

	OTLPEndpoint string  // QUEEN_KAFKA_OTLP_ENDPOINT: where traces go; empty: nowhere
	OTLPRatio    float64 // QUEEN_KAFKA_OTLP_RATIO: part of the requests that are traced

	MaxConnections    int     // QUEEN_KAFKA_MAX_CONNECTIONS: open sockets of the process
	TenantReserve     float64 // QUEEN_KAFKA_TENANT_RESERVE: part of each ceiling one tenant alone cannot take
	MaxPartitions     int32   // QUEEN_KAFKA_MAX_PARTITIONS: width of one topic
	DefaultPartitions int32   // QUEEN_KAFKA_DEFAULT_PARTITIONS: width of a topic made without one
	MaxProducerStates int     // QUEEN_KAFKA_MAX_PRODUCER_STATES: idempotence windows kept
	Coalesce          int     // QUEEN_KAFKA_COALESCE: buffered Produce frames merged into one push
	DedupWindow       int     // QUEEN_KAFKA_DEDUP_WINDOW_SECONDS: how long the cell knows a resend, on topics made here

	Tenant  Tenant
	Group   Group
	Txn     Txn
	Cluster Cluster
	Limits  Limits

	LogLevel string // LOG_LEVEL, RUST_LOG: debug, info, warn, error or off
	LogJSON  bool   // QUEEN_LOG_JSON
}

// Tenant holds the limits of every tenant on its own; 0 is none.
type Tenant struct {
	MaxConnections   int   // QUEEN_KAFKA_TENANT_MAX_CONNECTIONS: connections that have logged in
	ConnectRate      int   // QUEEN_KAFKA_TENANT_CONNECT_RATE: logins a second
	MaxInFlightBytes int64 // QUEEN_KAFKA_TENANT_MAX_INFLIGHT_BYTES: memory set aside for requests; reading waits above it
	MaxRequestRate   int   // QUEEN_KAFKA_TENANT_MAX_REQUEST_RATE: requests a second; above it clients are throttled
}

// Group holds the limits of consumer groups.
type Group struct {
	JoinDelay         time.Duration // QUEEN_KAFKA_GROUP_JOIN_DELAY_MS: wait of an empty group for more members
	MinSessionTimeout time.Duration // QUEEN_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS
	MaxSessionTimeout time.Duration // QUEEN_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS
}

// Txn holds the limits of transactions.
type Txn struct {
	MaxBytes       int64         // QUEEN_KAFKA_TXN_MAX_BYTES: one transaction
	MaxRecords     int           // QUEEN_KAFKA_TXN_MAX_RECORDS: one transaction
	MaxStagedBytes int64         // QUEEN_KAFKA_TXN_MAX_STAGED_BYTES: all open transactions
	MaxOpen        int           // QUEEN_KAFKA_TXN_MAX_OPEN: all open transactions
	MaxTimeout     time.Duration // QUEEN_KAFKA_TXN_MAX_TIMEOUT_MS: longest timeout a producer may ask for
}

// Limits are the compiled-in ceilings and deadlines. No variable sets them;
// tests do, to meet a limit without the traffic that would reach it.
type Limits struct {
	Frame              int           // bytes of a request or response frame after login
	PreauthFrame       int           // bytes of a request frame before login
	PreauthFrames      int           // frames a client may send before it is logged in
	InFlightBytes      int64         // weighted undecoded request bytes of the process; reading waits above it
	TLSHandshake       time.Duration // accept to a finished TLS handshake
	ProxyHeader        time.Duration // accept to a whole PROXY header
	Idle               time.Duration // wait for the first byte of a request
	FrameStall         time.Duration // wait for the next byte inside a frame
	FrameRate          int           // bytes a second that a frame must come with, FrameStall aside
	Linger             time.Duration // a half-closed connection is read for this long, and a frame under way may take this long
	LoginGrace         time.Duration // a gateway that drains still lets connections log in for this long
	RefusalHold        time.Duration // a refused login stays open this long, so that its answer is read
	LimitHold          time.Duration // a login over a tenant's connection limit stays open this long
	AddressBrake       Brake         // refused logins of one address, before more are slowed
	LaneBrake          Brake         // those for one lane of the list, or for all other names together
	ProcessBrake       Brake         // those of the process
	BrakedKnown        int           // addresses, and lanes, whose refusals are counted at once
	Lanes              int           // distinct forwarded names kept at once
	IdentityEntries    int           // credentials whose identity is kept
	CatalogEntries     int           // credentials whose catalog is kept
	FetchResponse      int           // bytes of one Fetch response
	FetchSessions      int           // fetch sessions of the process
	FetchSessionBytes  int64         // memory of fetch sessions of the process
	FetchSessionIdle   time.Duration // a session used since then makes no room for its tenant's others
	InflatedBytes      int64         // decompressed records and push bodies of the process
	AnswerBytes        int64         // answers under construction of the process
	CommitBody         int64         // what one transaction call carries: a cell takes bodies of 16 MiB
	CommitPartitions   int           // partitions of one transaction: a cell takes as many items in a call
	RoomWait           time.Duration // wait for room for decompressed records; below a client's request timeout (30 s)
	DecompressedBytes  int           // decompressed bytes of one Produce request
	ProduceRecords     int           // records of one Produce request
	MetadataNames      int           // names answered by one Metadata
	MetadataPartitions int           // partitions in one all-topics Metadata
	WaitingCommits     int64         // committed offsets of the process that are not written yet
	Groups             int           // consumer groups of the process
	GroupMembers       int           // members of one group
	GroupBytes         int           // metadata and assignments of one group's members
	GroupsBytes        int64         // the same of the process
	AutoCreates        int           // topics made, or deleted, by one request
	AlteredTopics      int           // topics whose configs one request alters
	DescribedConfigs   int           // resources described by one request
	SizeCalls          int           // topics whose sizes one request asks the cell for
}

// Brake is how many refused logins pass at once, and then each second. As many
// checks of credentials that are not known yet may be under way as refusals may
// pass.
type Brake struct {
	Burst     int
	PerSecond float64
}

// Addr is a host and a port as clients dial it.
type Addr struct {
	Host string // DNS name or IP literal, without brackets or trailing dot; empty with SNI
	Port int32  // 1–65535
	SNI  bool   // the host is the name of each client's lane (B5)
}

// String is host:port, with brackets where the host is an IPv6 literal, or
// sni:port.
func (a Addr) String() string {
	if a.SNI {
		return net.JoinHostPort(dialled, strconv.Itoa(int(a.Port)))
	}
	return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
}

// Defaults is a Config with every default and no advertised address, which has
// none: a wrong guess gives clients that connect and then hang.
func Defaults() Config {
	return Config{
		URL:               "http://localhost:6632",
		Addr:              "0.0.0.0:9092",
		LoginTimeout:      10 * time.Second,
		AuthCache:         5 * time.Second,
		OTLPRatio:         0.01,
		Reverify:          30 * time.Second,
		DrainGrace:        20 * time.Second,
		MaxConnections:    4096,
		TenantReserve:     0.25,
		MaxPartitions:     1_000_000,
		DefaultPartitions: defaultPartitions,
		MaxProducerStates: 4_194_304,
		Coalesce:          defaultCoalesce,
		DedupWindow:       900,
		Group: Group{
			JoinDelay:         3 * time.Second,
			MinSessionTimeout: 6 * time.Second,
			MaxSessionTimeout: 5 * time.Minute,
		},
		Txn: Txn{
			MaxBytes:       8 << 20,
			MaxRecords:     50_000,
			MaxStagedBytes: 128 << 20,
			MaxOpen:        1024,
			MaxTimeout:     time.Hour,
		},
		Cluster:  defaultClusterSettings(),
		Limits:   defaultLimits(),
		LogLevel: "info",
	}
}

func defaultLimits() Limits {
	return Limits{
		Frame:              100 << 20,
		PreauthFrame:       64 << 10,
		PreauthFrames:      8,
		InFlightBytes:      4 << 30,
		TLSHandshake:       10 * time.Second,
		ProxyHeader:        5 * time.Second,
		Idle:               10 * time.Minute,
		FrameStall:         30 * time.Second,
		FrameRate:          32 << 10,
		Linger:             2 * time.Second,
		LoginGrace:         2 * time.Second,
		RefusalHold:        150 * time.Millisecond,
		LimitHold:          time.Second,
		AddressBrake:       Brake{Burst: 16, PerSecond: 2},
		LaneBrake:          Brake{Burst: 128, PerSecond: 16},
		ProcessBrake:       Brake{Burst: 256, PerSecond: 64},
		BrakedKnown:        8192,
		Lanes:              1024,
		IdentityEntries:    1024,
		CatalogEntries:     1024,
		FetchResponse:      32 << 20,
		FetchSessions:      8192,
		FetchSessionBytes:  512 << 20,
		FetchSessionIdle:   2 * time.Minute,
		InflatedBytes:      1 << 30,
		AnswerBytes:        1 << 30,
		CommitBody:         16<<20 - 64<<10,
		CommitPartitions:   10_000,
		RoomWait:           10 * time.Second,
		DecompressedBytes:  100 << 20,
		ProduceRecords:     1_000_000,
		MetadataNames:      10_000,
		MetadataPartitions: 200_000,
		AutoCreates:        100,
		WaitingCommits:     1_000_000,
		Groups:             10_000,
		GroupMembers:       5000,
		GroupBytes:         32 << 20,
		GroupsBytes:        512 << 20,
		AlteredTopics:      1000,
		DescribedConfigs:   10_000,
		SizeCalls:          100,
	}
}

// FromEnv reads the process environment.
func FromEnv() (Config, error) { return FromLookup(os.LookupEnv) }

// FromEnvBound is FromEnv for a listener that a command line has already opened
// at bound (host:port): that address is listened on and advertised, whatever
// the environment says.
func FromEnvBound(bound string) (Config, error) {
	return FromLookup(func(name string) (string, bool) {
		switch name {
		case "QUEEN_KAFKA_ADDR", "QUEEN_KAFKA_ADVERTISED_ADDR":
			return bound, true
		}
		return os.LookupEnv(name)
	})
}

// TLS reports whether the listener speaks TLS.
func (c *Config) TLS() bool { return c.TLSCert != "" || c.TLSKey != "" || c.TLSDir != "" }

// Names are the lanes, for the listener.
func (c *Config) Names() (*sni.Names, error) {
	return sni.NewNames(sni.Config{Lanes: c.Lanes, Default: c.DefaultLane, Forward: c.ForwardSNIHost})
}

// Warnings are the settings that are legal and still worth a line at every
// start.
func (c *Config) Warnings() []string {
	var out []string
	if len(c.SASL) > 0 && !c.TLS() {
		out = append(out, "QUEEN_KAFKA_SASL without QUEEN_KAFKA_TLS_CERT: tokens cross the network in the clear")
	}
	if len(c.SASL) == 0 && !c.Token.IsZero() {
		out = append(out, "QUEEN_KAFKA_SASL is unset: every client that reaches the listener acts with QUEEN_TOKEN")
	}
	if c.ForwardSNIHost && len(c.Lanes) > 0 && !c.Advertised.SNI {
		out = append(out, "QUEEN_KAFKA_FORWARD_SNI_HOST with one QUEEN_KAFKA_ADVERTISED_ADDR for all lanes: "+
			"clients come back under that name, and it is what the cell is then asked under; sni:PORT tells each its own")
	}
	return out
}
