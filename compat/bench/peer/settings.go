package peer

// Title is a peer's name for people.
func Title(id string) string {
	switch id {
	case Queen:
		return "queen-edge, TLS + SASL"
	case KafkaTLS:
		return "Apache Kafka, SASL_SSL"
	case KafkaSync:
		return "Apache Kafka, SASL_SSL, sync"
	case KafkaOpen:
		return "Apache Kafka, plaintext"
	case Bare:
		return "bare crypto/tls"
	}
	return id
}

// Settings are a peer's settings for the report: all that is not a default.
func Settings(id string) []string {
	switch id {
	case Queen:
		return queenSettings()
	case Bare:
		return []string{"crypto/tls with the same certificate, answers every frame with itself; resumption not used by the client"}
	default:
		return kafkaSettings(id)
	}
}
