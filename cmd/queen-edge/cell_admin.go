package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/queen-mq/queen-edge/internal/cell"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// cellAdmin is what the subcommands that administrate a cell share.
type cellAdmin struct {
	dir  *string // the cell command's --data
	json bool
}

// newCellAdminCommands are the subcommands of "queen-edge cell". They reach the
// cell that runs on the folder, or else the folder itself.
func newCellAdminCommands(dir *string) []*cobra.Command {
	a := &cellAdmin{dir: dir}
	commands := []*cobra.Command{a.tenant(), a.cluster(), a.key(), a.usage()}
	for _, c := range commands {
		c.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON instead of a table")
	}
	return commands
}

// group is a command that only has subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return fmt.Errorf("%s: say what to do: %s", cmd.CommandPath(), strings.Join(names(cmd.Commands()), ", "))
	}}
	cmd.AddCommand(commands...)
	return cmd
}

func names(commands []*cobra.Command) []string {
	list := make([]string, len(commands))
	for i, c := range commands {
		list[i] = c.Name()
	}
	return list
}

// command is one act. build makes the request from the arguments.
func (a *cellAdmin) command(use, short string, args cobra.PositionalArgs, build func(args []string) (cell.AdminRequest, error)) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		request, err := build(args)
		if err != nil {
			return err
		}
		return a.do(cmd.OutOrStdout(), request)
	}}
}

func (a *cellAdmin) tenant() *cobra.Command {
	one := func(op string) func([]string) (cell.AdminRequest, error) {
		return func(args []string) (cell.AdminRequest, error) { return cell.AdminRequest{Op: op, Tenant: args[0]}, nil }
	}
	return group("tenant", "Paying tenants: what clusters belong to",
		a.command("add NAME", "Add a tenant", cobra.ExactArgs(1), one(cell.OpTenantAdd)),
		a.command("list", "List tenants", cobra.NoArgs, only(cell.OpTenantList)),
		a.command("suspend NAME|ID", "Refuse every request of a tenant's clusters", cobra.ExactArgs(1), one(cell.OpTenantSuspend)),
		a.command("resume NAME|ID", "Serve a suspended tenant again", cobra.ExactArgs(1), one(cell.OpTenantResume)))
}

// only builds a request that has no arguments.
func only(op string) func([]string) (cell.AdminRequest, error) {
	return func([]string) (cell.AdminRequest, error) { return cell.AdminRequest{Op: op}, nil }
}

func (a *cellAdmin) cluster() *cobra.Command {
	var tenant, plan string
	add := a.command("add SLUG", "Add a cluster: queues, groups and keys of its own", cobra.ExactArgs(1), func(args []string) (cell.AdminRequest, error) {
		return cell.AdminRequest{Op: cell.OpClusterAdd, Cluster: args[0], Tenant: tenant, Plan: plan}, nil
	})
	add.Flags().StringVar(&tenant, "tenant", "", "name or id of the tenant (default: a new one with the cluster's name)")
	add.Flags().StringVar(&plan, "plan", "", "plan: "+strings.Join(planCodes(), ", ")+" (default "+control.PlanLocal+")")
	limit := a.command("set-limit SLUG NAME=VALUE...", "Override limits of a cluster's plan", cobra.MinimumNArgs(2), limitRequest)
	limit.Long = "Override limits of a cluster's plan. VALUE is a number, unlimited, or plan for what the\n" +
		"plan says. NAME is one of " + strings.Join(control.OverridableLimits(), ", ") + "."
	return group("cluster", "Clusters: the unit of isolation", add,
		a.command("list", "List clusters", cobra.NoArgs, only(cell.OpClusterList)), limit,
		a.command("set-plan SLUG PLAN", "Move a cluster to another plan: "+strings.Join(planCodes(), ", "), cobra.ExactArgs(2), func(args []string) (cell.AdminRequest, error) {
			return cell.AdminRequest{Op: cell.OpClusterPlan, Cluster: args[0], Plan: args[1]}, nil
		}))
}

func planCodes() []string {
	var codes []string
	for _, p := range control.Plans() {
		codes = append(codes, p.Code)
	}
	return codes
}

// limitRequest reads NAME=VALUE arguments.
func limitRequest(args []string) (cell.AdminRequest, error) {
	r := cell.AdminRequest{Op: cell.OpClusterLimit, Cluster: args[0], Limits: map[string]json.RawMessage{}}
	for _, arg := range args[1:] {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return r, fmt.Errorf("%q is not of the form NAME=VALUE", arg)
		}
		switch value {
		case "plan":
			r.Unset = append(r.Unset, name)
		case "unlimited":
			r.Limits[name] = json.RawMessage("null")
		default:
			if n, err := strconv.ParseFloat(value, 64); err != nil || n < 0 || !json.Valid([]byte(value)) {
				return r, fmt.Errorf("%s: %q is neither a number from 0 on, nor unlimited, nor plan", name, value)
			}
			r.Limits[name] = json.RawMessage(value)
		}
	}
	return r, nil
}

func (a *cellAdmin) key() *cobra.Command {
	var scopes []string
	var expires, env string
	add := a.command("add SLUG", "Make an API key of a cluster and print it, this once", cobra.ExactArgs(1), func(args []string) (cell.AdminRequest, error) {
		r := cell.AdminRequest{Op: cell.OpKeyAdd, Cluster: args[0], Scopes: scopes, Env: env}
		at, err := parseExpiry(expires, time.Now())
		if err == nil && !at.IsZero() {
			r.ExpiresAt = &at
		}
		return r, err
	})
	add.Flags().StringSliceVar(&scopes, "scopes", control.AllScopes().Names(), "what the key may do; a Kafka client needs read to log in")
	add.Flags().StringVar(&expires, "expires", "", "when the key ends: 90d, 12h, or a time such as 2027-01-31T00:00:00Z (default: never)")
	add.Flags().StringVar(&env, "env", "", `the word in the key's text (default "live")`)
	return group("key", "API keys: what clients log in with", add,
		a.command("list [SLUG]", "List keys, of one cluster or of all", cobra.MaximumNArgs(1), func(args []string) (cell.AdminRequest, error) {
			return cell.AdminRequest{Op: cell.OpKeyList, Cluster: strings.Join(args, "")}, nil
		}),
		a.command("revoke ID", "End a key at once", cobra.ExactArgs(1), func(args []string) (cell.AdminRequest, error) {
			return cell.AdminRequest{Op: cell.OpKeyRevoke, Key: args[0]}, nil
		}))
}

// parseExpiry reads a length of time from now, or a time; nothing is the zero
// time.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 {
			return now.AddDate(0, 0, n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("--expires %q: give a length such as 90d or 12h, or a time such as 2027-01-31T00:00:00Z", text)
}

func (a *cellAdmin) usage() *cobra.Command {
	var month, by string
	cmd := a.command("usage [SLUG]", "Show what clusters used, by class of operation", cobra.MaximumNArgs(1), func(args []string) (cell.AdminRequest, error) {
		return cell.AdminRequest{Op: cell.OpUsage, Cluster: strings.Join(args, ""), Month: month, By: by}, nil
	})
	cmd.Flags().StringVar(&month, "month", "", "month of the form 2026-10, UTC (default: this one)")
	cmd.Flags().StringVar(&by, "by", "month", "minute, hour, day or month")
	return cmd
}

// do lets the cell act, and shows what it says.
func (a *cellAdmin) do(w io.Writer, r cell.AdminRequest) (err error) {
	adding := slices.Contains([]string{cell.OpTenantAdd, cell.OpClusterAdd}, r.Op)
	admin, err := cell.OpenAdmin(*a.dir, adding)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close()) }()
	done, err := admin.Do(r)
	if err != nil {
		return err
	}
	if a.json {
		text := json.NewEncoder(w)
		text.SetIndent("", "  ")
		return text.Encode(done)
	}
	return printAdmin(w, r.Op, done)
}

// printAdmin prints the table of what an act shows.
func printAdmin(w io.Writer, op string, done cell.AdminResponse) error {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	switch kind, _, _ := strings.Cut(op, "."); kind {
	case "tenant":
		fmt.Fprintln(table, "TENANT\tSTATUS\tCLUSTERS\tID")
		for _, t := range done.Tenants {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.Name, t.Status, orDash(strings.Join(t.Clusters, ",")), t.ID)
		}
	case "cluster":
		fmt.Fprintln(table, "CLUSTER\tTENANT\tPLAN\tSTATUS\tOVERRIDES\tID")
		for _, c := range done.Clusters {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Slug, c.Tenant, c.Plan, c.Status, orDash(overridesText(c.Overrides)), c.ID)
		}
	case "key":
		fmt.Fprintln(table, "ID\tCLUSTER\tSCOPES\tSTATE\tEXPIRES")
		for _, k := range done.Keys {
			expires := "never"
			if k.ExpiresAt != nil {
				expires = k.ExpiresAt.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", k.ID, k.Cluster, orDash(strings.Join(k.Scopes, ",")), k.State, expires)
		}
	default:
		fmt.Fprintln(table, "FROM\tCLUSTER\tCLASS\tMESSAGES\tREQUESTS\tBYTES IN\tBYTES OUT")
		for _, u := range done.Usage {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\n", u.Start.UTC().Format("2006-01-02T15:04Z"), u.Cluster, u.Class, u.Msgs, u.Reqs, u.BytesIn, u.BytesOut)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if done.KeyText != "" {
		fmt.Fprintf(&out, "\nThe key, shown this once: %s\n", done.KeyText)
	}
	_, err := out.WriteTo(w)
	return err
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func overridesText(o map[string]json.RawMessage) string {
	list := make([]string, 0, len(o))
	for name, value := range o {
		text := string(value)
		if text == "null" {
			text = "unlimited"
		}
		list = append(list, name+"="+text)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}
