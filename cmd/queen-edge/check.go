package main

import (
	"github.com/spf13/cobra"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/check"
	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/edge/config"
)

// newCheckCommand is "queen-edge check": what an operator runs before serve,
// with the same environment.
func newCheckCommand() *cobra.Command {
	var o probeOptions
	var hosts []string
	cmd := probe("check", "Look at the configuration, the certificates, the cell and a token, before serving",
		`Look at the QUEEN_* variables as serve would, at the certificates, and at the cell:
is it reached and trusted, does it know a token, does it take the Host that is
forwarded for the token's cluster, and has it granted that cluster its keys and
values. Every problem is told at once. Nothing is changed at the cell.

The token is a tenant's: --token-file, --token, QUEEN_KAFKA_CHECK_TOKEN, or else
QUEEN_TOKEN. Ends with 0 where nothing failed, and with the code of the first step
that did (docs/OPERATIONS.md).`,
		func(cmd *cobra.Command) (*steps.Report, error) {
			token, err := o.secret(cmd)
			if err != nil {
				return nil, err
			}
			cfg, err := config.FromEnv()
			return check.Run(cmd.Context(), check.Options{
				Config: cfg, Err: err, Token: token, Hosts: hosts, Timeout: o.timeout, Told: o.told(cmd),
			}), nil
		}, &o)
	cmd.Flags().StringArrayVar(&hosts, "host", nil, "a name that clients dial beside the advertised one; repeatable")
	return cmd
}
