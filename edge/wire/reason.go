package wire

// Reason is why a connection ended: exactly one per connection, from this list
// alone, so that it can label logs and metrics.
type Reason uint8

// Side says whose doing the end of a connection was.
type Side string

// Sides of a Reason.
const (
	ClientSide  Side = "client"
	GatewaySide Side = "gateway"
	CellSide    Side = "cell"
)

// Reasons. The first group is the client's doing.
const (
	ClientClosed      Reason = iota // closed between requests
	ProbeClosed                     // closed before a byte of a request: balancers probe so
	ClientCut                       // closed in the middle of a frame
	ClientSlow                      // no byte in time within a frame, or an answer not taken
	ClientIdle                      // no request for the idle limit
	ClientError                     // reset or another socket error
	ProxyUntrusted                  // not from a balancer, where only balancers may connect
	ProxyHeader                     // no PROXY header, a broken one, or not in time
	TLSFailed                       // the handshake failed
	UnknownName                     // the name that was dialled is not served
	LoginTimeout                    // not authenticated in time
	LoginFrames                     // too many frames before login
	BeforeLogin                     // an API that is not answered before login
	OutOfOrderLogin                 // SaslAuthenticate without a handshake
	FrameOversize                   // declared length above the limit
	FrameShort                      // too short for a request header
	UnknownAPI                      // no such API key
	UnknownVersion                  // version outside the announced window
	Malformed                       // header or body does not decode, or bytes are left over
	LoginRefused                    // the cell refused the credential
	Revoked                         // the cell does not take the credential any more
	AcksZeroFailed                  // an acks=0 produce failed: the close is the answer
	LoginUnsure                     // the credential could not be checked
	LoginBraked                     // too many were refused of late where it came from: not checked
	CapacityProcess                 // the process holds its maximum of connections
	CapacityUnproved                // oldest of too many connections that have not logged in
	CapacityTenant                  // the tenant may hold no more connections
	TenantConnections               // the tenant's own limit of connections (QUEEN_KAFKA_TENANT_MAX_CONNECTIONS)
	TenantConnectRate               // the tenant's own limit of logins a second (QUEEN_KAFKA_TENANT_CONNECT_RATE)
	CapacityBytes                   // no room for the request's bytes in time
	AnswerTooLarge                  // the answer would not fit a frame
	SessionExpired                  // the announced lifetime of the login is over
	ConnectionAge                   // older than connections may become
	Draining                        // planned shutdown
	Internal                        // a bug: recovered panic
	reasonCount
)

type reasonText struct {
	name string
	side Side
}

var reasons = [reasonCount]reasonText{
	ClientClosed:      {"client_closed", ClientSide},
	ProbeClosed:       {"probe_closed", ClientSide},
	ClientCut:         {"client_cut", ClientSide},
	ClientSlow:        {"client_slow", ClientSide},
	ClientIdle:        {"client_idle", ClientSide},
	ClientError:       {"client_error", ClientSide},
	ProxyUntrusted:    {"proxy_untrusted", ClientSide},
	ProxyHeader:       {"proxy_header", ClientSide},
	TLSFailed:         {"tls_failed", ClientSide},
	UnknownName:       {"unknown_name", ClientSide},
	LoginTimeout:      {"login_timeout", ClientSide},
	LoginFrames:       {"login_frames", ClientSide},
	BeforeLogin:       {"before_login", ClientSide},
	OutOfOrderLogin:   {"login_out_of_order", ClientSide},
	FrameOversize:     {"frame_oversize", ClientSide},
	FrameShort:        {"frame_short", ClientSide},
	UnknownAPI:        {"unknown_api", ClientSide},
	UnknownVersion:    {"unknown_version", ClientSide},
	Malformed:         {"malformed", ClientSide},
	LoginRefused:      {"login_refused", CellSide},
	Revoked:           {"revoked", CellSide},
	AcksZeroFailed:    {"acks_zero_failed", GatewaySide},
	LoginUnsure:       {"login_unsure", CellSide},
	LoginBraked:       {"login_braked", GatewaySide},
	CapacityProcess:   {"capacity_process", GatewaySide},
	CapacityUnproved:  {"capacity_unproved", GatewaySide},
	CapacityTenant:    {"capacity_tenant", GatewaySide},
	TenantConnections: {"tenant_connections", GatewaySide},
	TenantConnectRate: {"tenant_connect_rate", GatewaySide},
	CapacityBytes:     {"capacity_bytes", GatewaySide},
	AnswerTooLarge:    {"answer_too_large", GatewaySide},
	SessionExpired:    {"session_expired", GatewaySide},
	ConnectionAge:     {"connection_age", GatewaySide},
	Draining:          {"draining", GatewaySide},
	Internal:          {"internal", GatewaySide},
}

// Reasons are all of them.
func Reasons() []Reason {
	out := make([]Reason, reasonCount)
	for i := range out {
		out[i] = Reason(i)
	}
	return out
}

// String is the reason's name in logs and metrics.
func (r Reason) String() string {
	if r < reasonCount {
		return reasons[r].name
	}
	return "unknown"
}

// Side says whose doing it was.
func (r Reason) Side() Side {
	if r < reasonCount {
		return reasons[r].side
	}
	return GatewaySide
}

// Close is the error of a connection that must end. Its text is for the log,
// never for the client.
type Close struct {
	Reason Reason
	Err    error // details; may be nil
}

// Closing makes a Close.
func Closing(r Reason, err error) *Close { return &Close{Reason: r, Err: err} }

func (c *Close) Error() string {
	if c.Err == nil {
		return c.Reason.String()
	}
	return c.Reason.String() + ": " + c.Err.Error()
}

// Unwrap returns the details.
func (c *Close) Unwrap() error { return c.Err }
