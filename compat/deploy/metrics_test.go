package deploy

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/tenancy"
)

// page is what a gateway tells Prometheus.
func page(t *testing.T) string {
	t.Helper()
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(cfg *config.Config) {
			cfg.AdminAddr, cfg.AdminToken = "127.0.0.1:9600", tenancy.NewSecret("scrape")
		}
	})
	r.Login(t, rig.Acme)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Gateway.ServeSide(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	req, err := http.NewRequestWithContext(rig.Context(t), http.MethodGet, "http://"+ln.Addr().String()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer scrape")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read whole
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", resp.StatusCode, err)
	}
	return string(body)
}

// ofPrometheus are labels that the scraper adds, with up, which it makes.
var ofPrometheus = []string{"instance", "job", "le", "up"}

// wantExpr: every metric of an expression is on the page, with the labels it is
// asked for, and with every value that a label is asked for. So a renamed metric,
// or an outcome that is called otherwise now, does not leave an alert that never
// fires.
func wantExpr(t *testing.T, where, expr, page string) {
	t.Helper()
	names := 0
	selector := regexp.MustCompile(`\b((?:queen_edge|process|go)_\w+|up\b)(?:\{([^}]*)\})?`)
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		names++
		if slices.Contains(ofPrometheus, m[1]) {
			continue
		}
		if !strings.Contains(page, "\n"+m[1]+"{") && !strings.Contains(page, "\n"+m[1]+" ") {
			t.Errorf("%s: there is no metric %s", where, m[1])
			continue
		}
		for _, l := range regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`).FindAllStringSubmatch(m[2], -1) {
			if slices.Contains(ofPrometheus, l[1]) {
				continue
			}
			for _, v := range strings.Split(l[3], "|") {
				if !regexp.MustCompile(`\n` + m[1] + `\{[^}]*\b` + l[1] + `="` + regexp.QuoteMeta(v) + `"`).MatchString(page) {
					t.Errorf("%s: no %s has %s=%q", where, m[1], l[1], v)
				}
			}
		}
	}
	for _, by := range matches(`\b(?:by|on) \(([^)]*)\)`, expr) {
		for _, label := range strings.Split(by, ", ") {
			if !slices.Contains(ofPrometheus, label) && !strings.Contains(page, label+`="`) {
				t.Errorf("%s: no metric has a label %s", where, label)
			}
		}
	}
	if names == 0 {
		t.Errorf("%s: no metric in %q", where, expr)
	}
}

// rules is a file of alerting rules.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// Every alert rests on metrics there are, has a section of docs/OPERATIONS.md that
// its reader is sent to, and a test that it fires and one that it does not.
func TestAlerts(t *testing.T) {
	page := page(t)
	tests, docs := read(t, dir+"prometheus/alerts_test.yml"), read(t, "../../docs/OPERATIONS.md")
	var names []string
	for _, group := range documents[rules](t, dir+"prometheus/alerts.yml")[0].Groups {
		for _, r := range group.Rules {
			names = append(names, r.Alert)
			wantExpr(t, r.Alert, r.Expr, page)
			for _, want := range []string{"name: " + r.Alert + " fires\n", "name: " + r.Alert + " is silent\n"} {
				if !strings.Contains(tests, want) {
					t.Errorf("alerts_test.yml has no test %q", want)
				}
			}
			if !strings.Contains(docs, "\n### "+r.Alert+"\n") {
				t.Errorf("docs/OPERATIONS.md does not say what to do about %s", r.Alert)
			}
			if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/OPERATIONS.md#"+strings.ToLower(r.Alert)) {
				t.Errorf("%s sends its reader to %s", r.Alert, r.Annotations["runbook_url"])
			}
			if s := r.Labels["severity"]; s != "critical" && s != "warning" || r.Annotations["summary"] == "" {
				t.Errorf("%s: severity %q, summary %q", r.Alert, s, r.Annotations["summary"])
			}
		}
	}
	slices.Sort(names)
	if told := matches(`(?m)^### (QueenEdge\w+)$`, docs); !slices.Equal(told, names) {
		t.Errorf("docs/OPERATIONS.md tells of %q, there are %q", told, names)
	}
}

func TestAlertsByPromtool(t *testing.T) {
	promtool := tool(t, "promtool")
	run(t, dir+"prometheus", promtool, "check", "rules", "alerts.yml")
	run(t, dir+"prometheus", promtool, "test", "rules", "alerts_test.yml")
}

// Every number on the dashboard is one there is.
func TestDashboard(t *testing.T) {
	page := page(t)
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(read(t, dir+"grafana/queen-edge.json")), &board); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: its id is twice, it is off the board, or it shows nothing", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			wantExpr(t, p.Title, target.Expr, page)
		}
	}
	for _, a := range board.Annotations.List {
		wantExpr(t, "annotation", a.Expr, page)
	}
}
