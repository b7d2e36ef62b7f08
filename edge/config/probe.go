package config

import (
	"os"

	"github.com/queen-mq/queen-edge/tenancy"
)

// probeVariable is read by the commands that look for faults, and by no gateway.
const probeVariable = "QUEEN_KAFKA_CHECK_TOKEN"

// ProbeToken is a tenant's token for a command that tries a gateway or a cell
// with it; zero where the environment has none. The error names the variable.
func ProbeToken() (tenancy.Secret, error) { return probeToken(os.LookupEnv) }

func probeToken(lookup func(string) (string, bool)) (tenancy.Secret, error) {
	value, ok := trimmed(lookup, probeVariable)
	if !ok {
		return tenancy.Secret{}, nil
	}
	return ReadToken(probeVariable, value)
}

// ReadToken makes a token of a text from elsewhere, which source names. It
// holds it to what the variables are held to: at most 16 KiB, without spaces or
// control characters. The error never shows the text.
func ReadToken(source, text string) (tenancy.Secret, error) {
	var token tenancy.Secret
	if reason := readSecret(&token, text); reason != "" {
		return token, &Problem{source, tenancy.Redacted, reason, "a token of at most 16 KiB, without spaces or control characters", "none"}
	}
	return token, nil
}
