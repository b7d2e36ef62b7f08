package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/doctor"
	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/sasl"
)

// doctorOptions are the flags of "queen-edge doctor".
type doctorOptions struct {
	probeOptions
	bootstrap string
	ca        string
	topic     string
	mechanism string
	plaintext bool
	skip      []string
}

// newDoctorCommand is "queen-edge doctor": what a user runs whose client does
// not get through, from where the client runs.
func newDoctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := probe("doctor --bootstrap HOST:PORT", "Dial a gateway as a client does, and name the step that fails",
		`Dial a gateway as a client does, and name the step that fails: the DNS, TCP, TLS,
the name, the login, the token's scope, Metadata, the advertised address of each
broker, producing, fetching, committing. Run it where the client runs.

With --topic one record is written to that topic and read again. An offset is
committed for a group that nobody uses, which is then deleted.

The token comes from --token-file, --token or QUEEN_KAFKA_CHECK_TOKEN, and is never
printed. Ends with 0 where nothing failed, and with the code of the first step that
did (docs/OPERATIONS.md).`,
		func(cmd *cobra.Command) (*steps.Report, error) {
			run, err := o.options(cmd)
			if err != nil {
				return nil, err
			}
			return doctor.Run(cmd.Context(), run), nil
		}, &o.probeOptions)
	f := cmd.Flags()
	f.StringVar(&o.bootstrap, "bootstrap", "", "host:port that clients have as bootstrap.servers (required)")
	f.StringVar(&o.ca, "ca", "", "PEM file of the authorities to trust (default: the system's)")
	f.StringVar(&o.topic, "topic", "", "topic to write one record to and read it from; it has to exist")
	f.StringVar(&o.mechanism, "mechanism", string(sasl.Plain), "SASL mechanism: PLAIN or OAUTHBEARER")
	f.BoolVar(&o.plaintext, "plaintext", false, "dial without TLS; the token crosses the network in the clear")
	f.StringSliceVar(&o.skip, "skip", nil, "steps to leave out: "+strings.Join(doctor.Optional(), ", "))
	return cmd
}

// options makes of the flags what Run takes, or says what is wrong with them.
func (o *doctorOptions) options(cmd *cobra.Command) (run doctor.Options, err error) {
	run = doctor.Options{Plaintext: o.plaintext, Topic: o.topic, Skip: o.skip, Timeout: o.timeout, Told: o.told(cmd)}
	if run.Host, run.Port, err = hostPort(o.bootstrap); err != nil {
		return run, err
	}
	run.Mechanism = sasl.Mechanism(strings.ToUpper(o.mechanism))
	if run.Mechanism != sasl.Plain && run.Mechanism != sasl.OAuthBearer {
		return run, fmt.Errorf("--mechanism %q is neither PLAIN nor OAUTHBEARER", o.mechanism)
	}
	for _, step := range o.skip {
		if !slices.Contains(doctor.Optional(), step) {
			return run, fmt.Errorf("--skip %q is none of %s", step, strings.Join(doctor.Optional(), ", "))
		}
	}
	if o.ca != "" {
		if run.Roots, err = roots(o.ca); err != nil {
			return run, err
		}
	}
	run.Token, err = o.secret(cmd)
	return run, err
}

func hostPort(bootstrap string) (host, port string, err error) {
	if bootstrap == "" {
		return "", "", errors.New("--bootstrap HOST:PORT is required")
	}
	host, port, err = net.SplitHostPort(bootstrap)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 || strings.ContainsAny(host, ", /") {
		return "", "", fmt.Errorf("--bootstrap %q is not one host:port or [v6]:port, with a port from 1 to 65535", bootstrap)
	}
	return host, port, nil
}

func roots(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca: %s holds no certificate", path)
	}
	return pool, nil
}
