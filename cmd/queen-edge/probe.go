package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/tenancy"
)

// probeOptions are the flags that check and doctor share.
type probeOptions struct {
	token     string
	tokenFile string
	timeout   time.Duration
	json      bool
}

func (o *probeOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.token, "token", "", "the token; - reads it from the standard input. Others on this machine can see it in the list of processes: better --token-file, or QUEEN_KAFKA_CHECK_TOKEN")
	f.StringVar(&o.tokenFile, "token-file", "", "file that holds the token; - is the standard input")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long each step may take")
	f.BoolVar(&o.json, "json", false, "print the steps as one JSON object")
}

// probe makes a command whose end is the exit code of a report. What cannot be
// understood of a command line is told on stderr, and is steps.Usage.
func probe(use, short, long string, run func(cmd *cobra.Command) (*steps.Report, error), o *probeOptions) *cobra.Command {
	usage := func(cmd *cobra.Command, err error) error {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\nSee %s --help.\n", cmd.CommandPath(), err, cmd.CommandPath())
		return &steps.Exit{Code: steps.Usage}
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return usage(cmd, err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := run(cmd)
			if err != nil {
				return usage(cmd, err)
			}
			return o.print(cmd.OutOrStdout(), report)
		},
	}
	o.flags(cmd)
	cmd.SetFlagErrorFunc(usage)
	return cmd
}

func (o *probeOptions) print(w io.Writer, report *steps.Report) error {
	show := report.Verdict
	if o.json {
		show = report.WriteJSON
	}
	if err := show(w); err != nil {
		return err
	}
	if !report.OK {
		return &steps.Exit{Code: report.ExitCode}
	}
	return nil
}

// told is where the steps go as they end; JSON is told whole.
func (o *probeOptions) told(cmd *cobra.Command) func(steps.Step) {
	if o.json {
		return nil
	}
	return steps.PrintTo(cmd.OutOrStdout())
}

// secret reads the token from where the command line says, or else from the
// environment; zero where there is none.
func (o *probeOptions) secret(cmd *cobra.Command) (tenancy.Secret, error) {
	if o.timeout <= 0 {
		return tenancy.Secret{}, fmt.Errorf("--timeout %v is no time", o.timeout)
	}
	from := o.tokenFile
	switch {
	case o.token != "" && from != "":
		return tenancy.Secret{}, errors.New("--token and --token-file: one of them")
	case o.token == "-":
		from = "-"
	case o.token != "":
		return config.ReadToken("--token", o.token)
	case from == "":
		return config.ProbeToken()
	}
	text, err := readToken(cmd.InOrStdin(), from)
	if err != nil {
		return tenancy.Secret{}, err
	}
	return config.ReadToken("--token-file", string(text))
}

// maxTokenFile bounds what is read of a token's file: a wrong path may name
// anything.
const maxTokenFile = 64 << 10

func readToken(stdin io.Reader, path string) ([]byte, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		defer f.Close() //nolint:errcheck // it is only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxTokenFile))
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil, fmt.Errorf("--token-file: %s holds no token", path)
	}
	return text, nil
}
