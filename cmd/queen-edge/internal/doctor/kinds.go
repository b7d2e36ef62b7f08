package doctor

import "github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"

// The steps, in the order a client meets them.
var (
	dns        = steps.Kind{Name: "dns", Exit: 10, Does: "the name has addresses"}
	tcp        = steps.Kind{Name: "tcp", Exit: 11, Does: "one of them takes a connection"}
	tlsShake   = steps.Kind{Name: "tls", Exit: 12, Does: "TLS 1.2 or 1.3, and a certificate in its time from an authority that is trusted (`--ca`, else the system's)"}
	name       = steps.Kind{Name: "name", Exit: 13, Does: "the gateway serves the dialled name, and the certificate is for it"}
	kafka      = steps.Kind{Name: "kafka", Exit: 14, Does: "the peer answers ApiVersions"}
	login      = steps.Kind{Name: "sasl", Exit: 15, Does: "the mechanism is offered, and the token is taken"}
	scope      = steps.Kind{Name: "scope", Exit: 16, Does: "the token may list topics, which every login needs"}
	metadata   = steps.Kind{Name: "metadata", Exit: 17, Does: "brokers and topics are listed, `--topic` among them"}
	advertised = steps.Kind{Name: "advertised", Exit: 18, Does: "each broker named there is reached at the address it is named with: all steps above once more"}
	produce    = steps.Kind{Name: "produce", Exit: 19, Does: "one record is written to `--topic`"}
	fetch      = steps.Kind{Name: "fetch", Exit: 20, Does: "it is read again"}
	commit     = steps.Kind{Name: "commit", Exit: 21, Does: "an offset of a group that nobody uses is committed, and the group deleted"}
)

// Kinds are the steps in the order they are taken.
func Kinds() []steps.Kind {
	return []steps.Kind{dns, tcp, tlsShake, name, kafka, login, scope, metadata, advertised, produce, fetch, commit}
}

// Optional are the steps that may be left out.
func Optional() []string { return []string{produce.Name, fetch.Name, commit.Name} }

// Causes, as JSON shows them. They are a promise to scripts.
const (
	causeNoSuchName   = "no_such_name"
	causeTimeout      = "timeout"
	causeRefused      = "refused"
	causeUnreachable  = "unreachable"
	causeClosed       = "closed"
	causeBroken       = "broken"
	causeNotTLS       = "not_tls"
	causeSpeaksTLS    = "speaks_tls"
	causeHandshake    = "handshake_failed"
	causeExpired      = "expired"
	causeNotYet       = "not_yet_valid"
	causeAuthority    = "unknown_authority"
	causeNotServer    = "not_for_servers"
	causeCertificate  = "bad_certificate"
	causeWrongName    = "wrong_name"
	causeUnknownName  = "unknown_name"
	causeExpiresSoon  = "expires_soon"
	causeNotKafka     = "not_kafka"
	causeTooOld       = "version_not_offered"
	causeNoToken      = "no_token"
	causeNoLogin      = "no_login"
	causeMechanism    = "mechanism_not_offered"
	causeBadToken     = "bad_token"
	causeSuspended    = "suspended"
	causeMissingScope = "missing_scope"
	causeCell         = "cell_unavailable"
	causeNoTopic      = "no_such_topic"
	causeNoBroker     = "no_broker"
	causeLoopback     = "loopback"
	causeKafkaError   = "kafka_error"
	causeNotRead      = "not_read"
	causeLeftBehind   = "left_behind"
	causeInterrupted  = "interrupted"
)
