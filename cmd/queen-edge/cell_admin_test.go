package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/internal/cell"
)

// inCell runs one subcommand of "queen-edge cell" in this process.
func inCell(dir string, args ...string) (string, error) {
	root := newRootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"cell", "--data", dir}, args...))
	err := root.Execute()
	return out.String(), err
}

func mustCell(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := inCell(dir, args...)
	if err != nil {
		t.Fatalf("cell %v: %v", args, err)
	}
	return out
}

// asJSON runs one subcommand with --json.
func asJSON(t *testing.T, dir string, args ...string) cell.AdminResponse {
	t.Helper()
	var r cell.AdminResponse
	if out := mustCell(t, dir, append(args, "--json")...); json.Unmarshal([]byte(out), &r) != nil {
		t.Fatalf("cell %v: %s", args, out)
	}
	return r
}

// TestCellAdmin does the same acts on a folder and through the cell that runs
// on it.
func TestCellAdmin(t *testing.T) {
	for _, running := range []bool{false, true} {
		t.Run(map[bool]string{false: "folder", true: "running"}[running], func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			url := ""
			if running {
				p := launch(t, nil, "cell", "--data", dir, "--addr", "127.0.0.1:0")
				url = p.line(t, "cell: listening on ")
				defer func() {
					if code := p.stop(t); code != 0 {
						t.Errorf("exit code %d: %s", code, p.stderr)
					}
					if _, err := os.Stat(filepath.Join(dir, cell.AdminSocket)); !os.IsNotExist(err) {
						t.Errorf("the socket outlives its cell: %v", err)
					}
				}()
				info, err := os.Stat(filepath.Join(dir, cell.AdminSocket))
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Fatalf("the socket: %v, %v", info, err)
				}
			}
			adminWalk(t, dir, url)
		})
	}
}

// adminWalk is one of everything. url is the running cell's, or empty.
func adminWalk(t *testing.T, dir, url string) {
	mustCell(t, dir, "tenant", "add", "Acme")
	mustCell(t, dir, "cluster", "add", "acme-prod", "--tenant", "Acme", "--plan", "free")
	mustCell(t, dir, "cluster", "add", "lone")
	out := mustCell(t, dir, "cluster", "set-limit", "acme-prod", "max_req_per_sec=unlimited", "max_queues=3")
	if !strings.Contains(out, "max_queues=3,max_req_per_sec=unlimited") {
		t.Errorf("set-limit shows %s", out)
	}
	mustCell(t, dir, "cluster", "set-limit", "acme-prod", "max_queues=plan")
	mustCell(t, dir, "cluster", "set-plan", "acme-prod", "pro")
	clusters := asJSON(t, dir, "cluster", "list").Clusters
	if len(clusters) != 2 || clusters[0].Plan != "pro" || len(clusters[0].Overrides) != 1 || clusters[1].Tenant != "lone" || clusters[1].Plan != "local" {
		t.Errorf("clusters %+v", clusters)
	}
	made := asJSON(t, dir, "key", "add", "acme-prod", "--scopes", "consume,read", "--expires", "90d")
	if !strings.HasPrefix(made.KeyText, "qk_live_") || len(made.Keys) != 1 || strings.Join(made.Keys[0].Scopes, " ") != "consume read" || made.Keys[0].ExpiresAt == nil {
		t.Fatalf("key %+v", made)
	}
	if out := mustCell(t, dir, "key", "list", "acme-prod"); strings.Contains(out, made.KeyText) || !strings.Contains(out, made.Keys[0].ID) || !strings.Contains(out, "consume,read") {
		t.Errorf("key list shows %s", out)
	}
	expect := func(status int) {
		t.Helper()
		if url == "" {
			return
		}
		if got, body := ask(t, url+"/api/v1/resources/queues", made.KeyText); got != status {
			t.Errorf("%d %s, want %d", got, body, status)
		}
	}
	expect(http.StatusOK)
	mustCell(t, dir, "tenant", "suspend", "Acme")
	expect(http.StatusForbidden)
	if tenants := asJSON(t, dir, "tenant", "list").Tenants; len(tenants) != 2 || tenants[0].Status != "suspended" {
		t.Errorf("tenants %+v", tenants)
	}
	mustCell(t, dir, "tenant", "resume", "Acme")
	expect(http.StatusOK)
	usage := asJSON(t, dir, "usage", "acme-prod").Usage
	if url == "" && len(usage) != 0 || url != "" && (len(usage) != 1 || usage[0].Class != "read" || usage[0].Reqs != 2) {
		t.Errorf("usage %+v", usage)
	}
	if keys := asJSON(t, dir, "key", "revoke", made.Keys[0].ID).Keys; len(keys) != 1 || keys[0].State != "revoked" {
		t.Errorf("revoked %+v", keys)
	}
	expect(http.StatusUnauthorized)
	for want, args := range map[string][]string{
		`no tenant is called "Nobody" (there are: Acme, lone)`:    {"tenant", "suspend", "Nobody"},
		`there is a tenant called "Acme"`:                         {"tenant", "add", "Acme"},
		`no cluster is called "nope" (there are: acme-prod, lone`: {"key", "add", "nope"},
		`no cluster is called "nah"`:                              {"usage", "nah"},
		`already exists: cluster lone`:                            {"cluster", "add", "lone"},
		`unknown plan "gold"`:                                     {"cluster", "set-plan", "lone", "gold"},
		`no limit is called "max_quees"`:                          {"cluster", "set-limit", "lone", "max_quees=1"},
		`unknown scope "write"`:                                   {"key", "add", "lone", "--scopes", "write"},
		`--expires "soon"`:                                        {"key", "add", "lone", "--expires", "soon"},
		`2001-01-01T00:00:00Z has passed`:                         {"key", "add", "lone", "--expires", "2001-01-01"},
		`no key has the id "qk_…"`:                                {"key", "revoke", made.KeyText},
		`month "May"`:                                             {"usage", "--month", "May"},
		`usage by "week"`:                                         {"usage", "--by", "week"},
		`"max_queues" is not of the form NAME=VALUE`:              {"cluster", "set-limit", "lone", "max_queues"},
		`max_queues: "many"`:                                      {"cluster", "set-limit", "lone", "max_queues=many"},
		`say what to do: add, list, resume, suspend`:              {"tenant"},
	} {
		if _, err := inCell(dir, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("cell %v: %v, want %s", args, err, want)
		}
	}
}

func TestCellAdminOnNoFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := inCell(missing, "cluster", "list"); err == nil || !strings.Contains(err.Error(), "is no data folder") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Error("a list made a folder")
	}
	if out := mustCell(t, missing, "cluster", "add", "first"); !strings.Contains(out, "first") {
		t.Error(out)
	}
}

func TestParseExpiry(t *testing.T) {
	now := time.Date(2026, 10, 2, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "2d": now.AddDate(0, 0, 2), "90m": now.Add(90 * time.Minute),
		"2027-01-31": time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), "2027-01-31T12:00:00+02:00": time.Date(2027, 1, 31, 10, 0, 0, 0, time.UTC),
	} {
		if got, err := parseExpiry(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"-1h", "0d", "d", "tomorrow"} {
		if got, err := parseExpiry(text, now); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
