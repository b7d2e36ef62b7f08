package load

// Kind is what a load does.
type Kind string

// The kinds.
const (
	Produce   Kind = "produce"   // write for Seconds, at most MaxBytes
	Consume   Kind = "consume"   // read what a Produce has written
	FanOut    Kind = "fanout"    // write while Groups groups read all of it
	Latencies Kind = "latency"   // single records at Rate a second
	Login     Kind = "login"     // connections that log in and close
	Idle      Kind = "idle"      // connections that log in and stay
	Consumers Kind = "consumers" // members of groups with nothing to read
)

// Spec is one load.
type Spec struct {
	Kind Kind   `json:"kind"`
	Peer Peer   `json:"peer"`
	Name string `json:"name"` // of its topics and groups, which nothing else uses

	Topics      int     `json:"topics,omitempty"`
	Partitions  int     `json:"partitions,omitempty"` // of each topic
	Clients     int     `json:"clients,omitempty"`    // one connection for the records each
	RecordBytes int     `json:"record_bytes,omitempty"`
	Codec       string  `json:"codec,omitempty"` // none, lz4 or zstd
	Seconds     float64 `json:"seconds,omitempty"`
	MaxBytes    int64   `json:"max_bytes,omitempty"` // of values

	Rate   float64 `json:"rate,omitempty"`   // records a second
	Groups int     `json:"groups,omitempty"` // of FanOut and Consumers
	Count  int     `json:"count,omitempty"`  // connections of Idle, members of Consumers
	Lanes  int     `json:"lanes,omitempty"`  // logins at a time

	Tokens []string `json:"tokens,omitempty"` // of Login: each is used once; none: the peer's, for Seconds
	Expect *Sum     `json:"expect,omitempty"` // of Consume: what there is to read
}

// Peer is where the load goes.
type Peer struct {
	Addr  string `json:"addr"`
	CA    string `json:"ca,omitempty"`    // a PEM file; empty: plaintext
	Token string `json:"token,omitempty"` // password of SASL/PLAIN; empty: no login
	Echo  bool   `json:"echo,omitempty"`  // answers every frame with itself: no Kafka
}

// Result is what was measured.
type Result struct {
	Seconds  float64 `json:"seconds"`  // of the measured part
	Sum      Sum     `json:"sum"`      // of the measured part
	Total    Sum     `json:"total"`    // the same, and what was written before it
	Requests int64   `json:"requests"` // requests sent: those of Kafka's protocol
	// RawBytes and SentBytes are what batches held before and after compression.
	RawBytes  int64    `json:"raw_bytes,omitempty"`
	SentBytes int64    `json:"sent_bytes,omitempty"`
	Latency   *Latency `json:"latency,omitempty"`
	Count     int64    `json:"count,omitempty"` // logins, connections held, members
	TLS       string   `json:"tls,omitempty"`   // version and cipher suite of a login
}

// Latency is a distribution, in milliseconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Event is what a load says.
type Event struct {
	Ready  bool    `json:"ready,omitempty"`
	Result *Result `json:"result,omitempty"`
	Error  string  `json:"error,omitempty"`
}
