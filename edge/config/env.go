package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

const (
	defaultPartitions = 1024
	defaultCoalesce   = 5
	maxCoalesce       = 64
	maxTokenBytes     = 16 << 10
)

// variable is one row of the environment: its help, and how it is read. read
// returns what is wrong with the value, "" for nothing.
type variable struct {
	name  string
	does  string
	legal string
	def   string
	read  func(c *Config, value string) string
	hide  bool // the value is a secret, or may hold one
}

// Setting is one variable as an operator reads about it.
type Setting struct{ Name, Does, Legal, Default string }

// Settings are the variables this version reads, for help texts and the docs.
func Settings() []Setting {
	var out []Setting
	for _, v := range variables() {
		out = append(out, Setting{v.name, v.does, v.legal, v.def})
	}
	return out
}

// variables is the environment in the order problems are told.
func variables() []variable {
	return []variable{
		{"QUEEN_URL", "the cell's base URL, with or without a path", "an http or https URL", "http://localhost:6632", readURL, false},
		{"QUEEN_TOKEN", "the bearer of connections that do not log in (`QUEEN_KAFKA_SASL` unset), and of the registry of nodes (`QUEEN_KAFKA_NODE_ID`)", "a bearer token of at most 16 KiB, without spaces or control characters", "unset", readToken, true},
		{"QUEEN_KAFKA_ADDR", "where this process listens", "host:port or [v6]:port, port 1–65535", "0.0.0.0:9092", readAddr, false},
		{"QUEEN_KAFKA_ADVERTISED_ADDR", "what clients are told to dial after the first connection; `sni:PORT` is the name each dialled, and needs lanes", "host:port or [v6]:port that clients can dial, or sni:port; port 1–65535", "none, it is required", readAdvertised, false},
		integer("QUEEN_KAFKA_MAX_PARTITIONS", "widest a topic may be", 1_000_000, 1, 1_500_000, func(c *Config, n int64) { c.MaxPartitions = int32(n) }),
		integer("QUEEN_KAFKA_DEFAULT_PARTITIONS", "width of a topic that declares none; cut to the maximum", defaultPartitions, 1, 1_500_000, func(c *Config, n int64) { c.DefaultPartitions = int32(n) }),
		integer("QUEEN_KAFKA_MAX_PRODUCER_STATES", "idempotent streams (producer, partition) kept by the process", 4_194_304, 1024, 67_108_864, func(c *Config, n int64) { c.MaxProducerStates = int(n) }),
		integer("QUEEN_KAFKA_MAX_CONNECTIONS", "open connections of the process", 4096, 16, 1_000_000, func(c *Config, n int64) { c.MaxConnections = int(n) }),
		{"QUEEN_KAFKA_TLS_CERT", "the listener's default certificate chain, leaf first; needs the key; the files of all pairs are watched", "the path of a PEM certificate chain", "unset, a plaintext listener", path(func(c *Config) *string { return &c.TLSCert }), false},
		{"QUEEN_KAFKA_TLS_KEY", "its key: PKCS#8, PKCS#1 or SEC 1, in the clear; needs the certificate", "the path of a PEM private key", "unset, a plaintext listener", path(func(c *Config) *string { return &c.TLSKey }), false},
		{"QUEEN_KAFKA_TLS_DIR", "certificates for names: `<name>.crt` and `<name>.key`, `_wildcard.<suffix>.crt` and `.key` for `*.<suffix>`; a client is shown that of the exact name it dialled, else the wildcard's, else the default pair", "the path of a folder with at most 1000 pairs", "unset, the default pair alone", path(func(c *Config) *string { return &c.TLSDir }), false},
		{"QUEEN_KAFKA_TLS_TICKET_KEYS", "the keys of TLS session tickets, so that clients resume after a restart and at another replica: 32 bytes each, as base64 or hex, a line each; the first seals, all open; watched", "the path of a file with 1 to 16 keys", "unset, keys of this process alone", path(func(c *Config) *string { return &c.TLSTickets }), false},
		{"QUEEN_KAFKA_LANES", "the names this listener serves, by comma: names, or patterns `*.suffix` for one label more", "DNS names and patterns *.suffix", "unset, every name", readLanes, false},
		{"QUEEN_KAFKA_DEFAULT_LANE", "under which lane clients are served that name none of `QUEEN_KAFKA_LANES`, dial an address, or send no name", "a name that QUEEN_KAFKA_LANES covers", "unset, they are refused by the TLS alert unrecognized_name", readDefaultLane, false},
		{"QUEEN_KAFKA_SASL", "clients log in with their Queen token: it is the password of PLAIN, and the bearer of OAUTHBEARER", "plain, oauthbearer, or both separated by a comma", "unset, no login", readSASL, false},
		boolean("QUEEN_KAFKA_FORWARD_SNI_HOST", "the name a TLS client dialled becomes the Host of its calls to the cell", func(c *Config, v bool) { c.ForwardSNIHost = v }),
		millis("QUEEN_KAFKA_LOGIN_TIMEOUT_MS", "accept to logged in, the TLS handshake included", 10_000, 1000, 120_000, func(c *Config, d time.Duration) { c.LoginTimeout = d }),
		millis("QUEEN_KAFKA_AUTH_CACHE_MS", "reuse of a successful login check; 0 asks the cell every time", 5000, 0, 60_000, func(c *Config, d time.Duration) { c.AuthCache = d }),
		millis("QUEEN_KAFKA_REVERIFY_MS", "how often the cell is asked again about each token with open connections; a revoked one's are closed within this time and the cell's own delay", 30_000, 1000, 300_000, func(c *Config, d time.Duration) { c.Reverify = d }),
		millis("QUEEN_KAFKA_SESSION_LIFETIME_MS", "after which clients must log in again on their connection (KIP-368), where the token itself names no end; 0 is never", 0, 0, 604_800_000, func(c *Config, d time.Duration) { c.SessionLife = d }),
		{"QUEEN_KAFKA_PROXY_PROTOCOL", "every connection begins with a header of the PROXY protocol, version 1 or 2, whose source is the client's address; needs `QUEEN_KAFKA_PROXY_TRUSTED`", "required", "unset, no header is expected", readProxyProtocol, false},
		{"QUEEN_KAFKA_PROXY_TRUSTED", "the balancers that may send one; connections from elsewhere are closed", "networks and addresses separated by commas: 192.0.2.0/24,2001:db8::7", "unset", readProxyTrusted, false},
		maxAge("QUEEN_KAFKA_CONNECTION_MAX_AGE_MS", "how old a connection may become before it is closed between two requests; each one's age is up to 20 % less, by chance; 0 is any age"),
		{"QUEEN_KAFKA_TENANT_RESERVE", "part of every ceiling that no single tenant can take", "0–0.9", "0.25", readReserve, false},
		optional("QUEEN_KAFKA_TENANT_MAX_CONNECTIONS", "connections that one tenant may have logged in; beyond it a login is held for a second and closed", 1, 1_000_000, func(c *Config, n int64) { c.Tenant.MaxConnections = int(n) }),
		optional("QUEEN_KAFKA_TENANT_CONNECT_RATE", "logins a second of one tenant, ten seconds' worth at once after a rest; beyond it as above", 1, 100_000, func(c *Config, n int64) { c.Tenant.ConnectRate = int(n) }),
		optional("QUEEN_KAFKA_TENANT_MAX_INFLIGHT_BYTES", "memory set aside for requests of one tenant that are not answered yet (12 times the bytes of a Produce, 24 or 52 times those of others); beyond it reading waits", 1<<20, 1<<40, func(c *Config, n int64) { c.Tenant.MaxInFlightBytes = n }),
		optional("QUEEN_KAFKA_TENANT_MAX_REQUEST_RATE", "requests a second of one tenant, a second's worth at once after a rest; beyond it answers carry a throttle time, up to 5 s", 1, 1_000_000, func(c *Config, n int64) { c.Tenant.MaxRequestRate = int(n) }),
		millis("QUEEN_KAFKA_DRAIN_DELAY_MS", "SIGTERM, from which on `/readyz` says no, to the end of the listener: as long as a balancer needs to see that and to send nobody here any more", 0, 0, 120_000, func(c *Config, d time.Duration) { c.DrainDelay = d }),
		millis("QUEEN_KAFKA_DRAIN_GRACE_MS", "the end of the listener to exit", 20_000, 0, 600_000, func(c *Config, d time.Duration) { c.DrainGrace = d }),
		millis("QUEEN_KAFKA_GROUP_JOIN_DELAY_MS", "how long an empty group waits for more members", 3000, 0, 3_600_000, func(c *Config, d time.Duration) { c.Group.JoinDelay = d }),
		millis("QUEEN_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "shortest session timeout a member may ask for", 6000, 1, 3_600_000, func(c *Config, d time.Duration) { c.Group.MinSessionTimeout = d }),
		millis("QUEEN_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS", "longest session timeout a member may ask for", 300_000, 1, 3_600_000, func(c *Config, d time.Duration) { c.Group.MaxSessionTimeout = d }),
		integer("QUEEN_KAFKA_TXN_MAX_BYTES", "bytes of one transaction", 8<<20, 65_536, 67_108_864, func(c *Config, n int64) { c.Txn.MaxBytes = n }),
		integer("QUEEN_KAFKA_TXN_MAX_RECORDS", "records of one transaction", 50_000, 1, 5_000_000, func(c *Config, n int64) { c.Txn.MaxRecords = int(n) }),
		integer("QUEEN_KAFKA_TXN_MAX_STAGED_BYTES", "bytes of all open transactions", 128<<20, 1<<20, 8<<30, func(c *Config, n int64) { c.Txn.MaxStagedBytes = n }),
		integer("QUEEN_KAFKA_TXN_MAX_OPEN", "open transactions of the process", 1024, 1, 1_000_000, func(c *Config, n int64) { c.Txn.MaxOpen = int(n) }),
		millis("QUEEN_KAFKA_TXN_MAX_TIMEOUT_MS", "longest transaction timeout a producer may ask for", 3_600_000, 1000, 7_200_000, func(c *Config, d time.Duration) { c.Txn.MaxTimeout = d }),
		integer("QUEEN_KAFKA_DEDUP_WINDOW_SECONDS", "how many seconds the cell recognises what an idempotent producer sends again, on topics made from then on; 0 is never", 900, 0, 86_400, func(c *Config, n int64) { c.DedupWindow = int(n) }),
		nodeID(),
		{"QUEEN_KAFKA_CLUSTER", "the name of the cluster of nodes, and what clients are told as its id", "1–64 letters, digits, `.`, `_` and `-`; needs QUEEN_KAFKA_NODE_ID", defaultCluster, readCluster, false},
		millis("QUEEN_KAFKA_CLUSTER_HEARTBEAT_MS", "how often a node renews its row and reads those of the others", 2000, 500, 30_000, func(c *Config, d time.Duration) { c.Cluster.Heartbeat = d }),
		millis("QUEEN_KAFKA_CLUSTER_TTL_MS", "how long a node counts as alive that does not renew its row; three heartbeats at least", 10_000, 3000, 120_000, func(c *Config, d time.Duration) { c.Cluster.TTL = d }),
		{"QUEEN_KAFKA_COALESCE", "produce requests already received that share one call to the cell; a bad value is the default", "1–64, clamped", "5", readCoalesce, false},
		{"QUEEN_KAFKA_ADMIN_ADDR", "where `/livez`, `/readyz` and `/metrics` are answered, for operators only (docs/OPERATIONS.md)", "host:port or [v6]:port, port 1–65535", "unset, nowhere", readAdminAddr, false},
		{"QUEEN_KAFKA_ADMIN_TOKEN", "the bearer that `/metrics` asks for", "a bearer token of at most 16 KiB, without spaces or control characters", "unset, none is asked for", readAdminToken, true},
		boolean("QUEEN_KAFKA_ADMIN_PPROF", "Go's profiles at `/debug/pprof/` of the side listener, behind its token, which is then required", func(c *Config, v bool) { c.AdminPprof = v }),
		{"QUEEN_KAFKA_AUDIT_LOG", "where logins, revoked tokens and changes of topics, configs, groups and offsets are written down, a line of JSON each (docs/OPERATIONS.md)", "`stderr`, or the path of a file", "unset, nowhere", func(c *Config, v string) string { c.AuditLog = v; return "" }, false},
		{"QUEEN_KAFKA_OTLP_ENDPOINT", "where traces are sent by OTLP over HTTP; without a path `/v1/traces` is meant (docs/OPERATIONS.md)", "an http or https URL, without user or query", "unset, no traces", readOTLP, true},
		{"QUEEN_KAFKA_OTLP_RATIO", "part of the requests that are traced", "0–1", "0.01", readRatio, false},
		{"LOG_LEVEL", "how much is logged", "debug, info, warn, error, off", "info", readLevel, false},
		{"RUST_LOG", "the same, under the name of the facade this gateway can replace", "a level or a filter; wins over LOG_LEVEL", "unset", readLevel, false},
		{"QUEEN_LOG_JSON", "log lines as JSON; anything but `true` is text", "true", "false", func(c *Config, v string) string { c.LogJSON = v == "true"; return "" }, false},
	}
}

// unbuilt names the settings that belong to later versions. Ignoring one would
// tell an operator that a protection is on when it is not.
func unbuilt() []string {
	return []string{
		"QUEEN_KAFKA_REPLICAS",
		"QUEEN_KAFKA_PEER_ADDR",
		"QUEEN_KAFKA_PEER_ADVERTISED_ADDR",
		"QUEEN_KAFKA_PEER_CERT",
		"QUEEN_KAFKA_PEER_KEY",
		"QUEEN_KAFKA_PEER_CA",
		"QUEEN_KAFKA_SHARED_SECRET",
	}
}

// FromLookup reads every variable through lookup. The error lists all problems
// (see Problems); the Config is then not to be used.
func FromLookup(lookup func(string) (string, bool)) (Config, error) {
	c := Defaults()
	var problems []error
	add := func(p *Problem) { problems = append(problems, p) }
	set := make(map[string]bool)
	for _, v := range variables() {
		value, ok := trimmed(lookup, v.name)
		if !ok {
			continue
		}
		set[v.name] = true
		if reason := v.read(&c, value); reason != "" {
			add(&Problem{v.name, v.shown(value), reason, v.legal, v.def})
		}
	}
	if !set["QUEEN_KAFKA_DEFAULT_PARTITIONS"] {
		c.DefaultPartitions = min(c.DefaultPartitions, c.MaxPartitions)
	}
	for _, name := range unbuilt() {
		// The value is not shown: several of these are secrets.
		if _, ok := trimmed(lookup, name); ok {
			add(&Problem{Variable: name, Reason: "this version does not have this setting yet; unset it"})
		}
	}
	for _, p := range c.conflicts(set) {
		add(p)
	}
	if len(problems) > 0 {
		return c, errors.Join(problems...)
	}
	return c, nil
}

func trimmed(lookup func(string) (string, bool), name string) (string, bool) {
	value, _ := lookup(name)
	value = strings.TrimSpace(value)
	return value, value != ""
}

func (v variable) shown(value string) string {
	if v.hide {
		return tenancy.Redacted
	}
	if v.name == "QUEEN_URL" && strings.Contains(value, "@") {
		return tenancy.Redacted // a password may stand before the @
	}
	return show(value)
}

func integer(name, does string, def, lo, hi int64, set func(*Config, int64)) variable {
	read := func(c *Config, value string) string {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return "not a whole number"
		}
		if err != nil || n < lo || n > hi {
			return "out of range"
		}
		set(c, n)
		return ""
	}
	return variable{name, does, fmt.Sprintf("%d–%d", lo, hi), strconv.FormatInt(def, 10), read, false}
}

// optional is an integer whose setting is off while it is unset.
func optional(name, does string, lo, hi int64, set func(*Config, int64)) variable {
	v := integer(name, does, 0, lo, hi, set)
	v.def = "unset, no limit"
	return v
}

func millis(name, does string, def, lo, hi int64, set func(*Config, time.Duration)) variable {
	v := integer(name, does, def, lo, hi, func(c *Config, n int64) { set(c, time.Duration(n)*time.Millisecond) })
	v.legal += " milliseconds"
	return v
}

func boolean(name, does string, set func(*Config, bool)) variable {
	read := func(c *Config, value string) string {
		switch strings.ToLower(value) {
		case "true":
			set(c, true)
		case "false":
			set(c, false)
		default:
			return "neither true nor false"
		}
		return ""
	}
	return variable{name, does, "true or false", "false", read, false}
}

func path(into func(*Config) *string) func(*Config, string) string {
	return func(c *Config, value string) string {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return "holds a control character, which no path of ours does"
		}
		*into(c) = value
		return ""
	}
}

func readToken(c *Config, value string) string {
	return readSecret(&c.Token, value)
}

func readAdminToken(c *Config, value string) string {
	return readSecret(&c.AdminToken, value)
}

func readSecret(into *tenancy.Secret, value string) string {
	if len(value) > maxTokenBytes {
		return "too long"
	}
	for _, r := range value {
		if r <= ' ' || r >= 0x7f {
			return "holds a character that no HTTP header can carry"
		}
	}
	*into = tenancy.NewSecret(value)
	return ""
}

func readSASL(c *Config, value string) string {
	for _, name := range strings.Split(value, ",") {
		m := sasl.Mechanism(strings.ToUpper(strings.TrimSpace(name)))
		if m != sasl.Plain && m != sasl.OAuthBearer {
			return "not a mechanism this gateway knows"
		}
		if !slices.Contains(c.SASL, m) {
			c.SASL = append(c.SASL, m)
		}
	}
	return ""
}

func readReserve(c *Config, value string) string {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return "not a number"
	}
	if math.IsNaN(f) || f < 0 || f > 0.9 {
		return "out of range"
	}
	c.TenantReserve = f
	return ""
}

// readCoalesce never refuses: the variable is clamped, and nonsense is the
// default (contract §5).
func readCoalesce(c *Config, value string) string {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		c.Coalesce = int(min(max(n, 1), maxCoalesce))
	}
	return ""
}

// readLevel never refuses: logging must not stop a gateway. A filter of the
// form target=level,level is read for its bare level, else for the most
// talkative of its targets.
func readLevel(c *Config, value string) string {
	best := -1
	for _, directive := range strings.Split(value, ",") {
		target, name, scoped := strings.Cut(directive, "=")
		if !scoped {
			name = target
		}
		level, rank := levelOf(name)
		if rank < 0 {
			continue
		}
		if !scoped {
			c.LogLevel = level
			return ""
		}
		if rank > best {
			best = rank
			c.LogLevel = level
		}
	}
	return ""
}

// levelOf maps a level's spellings to ours; a higher rank says more.
func levelOf(name string) (level string, rank int) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "off":
		return "off", 0
	case "error":
		return "error", 1
	case "warn", "warning":
		return "warn", 2
	case "info":
		return "info", 3
	case "debug", "trace":
		return "debug", 4
	}
	return "", -1
}
