package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/tenancy"
)

// side is a gateway's listener for operators.
type side struct{ url, token string }

func startSide(t *testing.T, r *rig.Rig, token string) side {
	t.Helper()
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
			t.Errorf("the side listener: %v", err)
		}
	})
	return side{"http://" + ln.Addr().String(), token}
}

func (s side) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(rig.Context(t), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read whole
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// scrapeToken has the metrics ask for a token.
func scrapeToken(o *rig.Options) {
	then := o.Config
	o.Config = func(cfg *config.Config) {
		if then != nil {
			then(cfg)
		}
		cfg.AdminAddr, cfg.AdminToken = "127.0.0.1:9600", tenancy.NewSecret("scrape")
	}
}

// B7: the metrics ask for their token, the two others for none, and readiness
// ends with the drain while the listener goes on answering.
func TestSideListener(t *testing.T) {
	r := rig.Start(t, scrapeToken)
	open, wrong := startSide(t, r, ""), side{}
	wrong.url, wrong.token = open.url, "scrapes"
	for _, c := range []struct {
		who    side
		path   string
		status int
	}{
		{open, "/livez", 200},
		{open, "/metrics", 401},
		{wrong, "/metrics", 401},
		{side{open.url, "scrape"}, "/metrics", 200},
		{open, "/", 404},
		{open, "/debug/pprof/", 404},
	} {
		if status, body := c.who.get(t, c.path); status != c.status {
			t.Errorf("%s: %d %q, want %d", c.path, status, body, c.status)
		}
	}
	rig.Eventually(t, "readiness", func() bool { status, _ := open.get(t, "/readyz"); return status == 200 })
	r.StopGateway(t)
	if status, _ := open.get(t, "/readyz"); status != 503 {
		t.Errorf("ready after the drain: %d", status)
	}
	if status, _ := open.get(t, "/livez"); status != 200 {
		t.Errorf("not alive after the drain: %d", status)
	}
}

// What happens in groups is counted, each name is told in docs/OPERATIONS.md, and
// nothing that a client chose is a label.
func TestSideMetrics(t *testing.T) {
	r := rig.Start(t, noJoinDelay, scrapeToken)
	s := startSide(t, r, "scrape")
	w := r.Login(t, rig.Acme)
	m := newMember(t, w, "secret-group", true)
	m.join("secret-topic")
	if a := m.sendSync(m.id, "secret-topic")(); a.ErrorCode != 0 {
		t.Fatalf("sync: code %d", a.ErrorCode)
	}
	mustCommit(t, w, "another-secret", at{topic: "secret-topic", offset: 1})

	_, body := s.get(t, "/metrics")
	for _, want := range []string{
		`queen_edge_ready 1`,
		`queen_edge_connections{state="logged_in"} 1`,
		`queen_edge_groups{state="Stable"} 1`,
		`queen_edge_groups{state="Empty"} 0`,
		`queen_edge_group_members 1`,
		`queen_edge_group_rebalances_total{reason="joined"} 1`,
		`queen_edge_offset_commit_seconds_count{outcome="stored"} 1`,
		`queen_edge_offset_commit_seconds_count{outcome="not_stored"} 0`,
		`queen_edge_connections_closed_total{reason="login_refused",side="cell"} 0`,
	} {
		if !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("no line %q", want)
		}
	}
	for _, secret := range []string{"secret", r.Key(rig.Acme), rig.Acme} {
		if strings.Contains(body, secret) {
			t.Errorf("the metrics show %q", secret)
		}
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	page, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	if told, are := metricNames(`(?m)^\| .(queen_edge_\w+)`, string(page)), metricNames(`(?m)^# TYPE (queen_edge_\w+)`, body); !slices.Equal(told, are) {
		t.Errorf("docs/OPERATIONS.md tells of\n%q, there are\n%q", told, are)
	}
}

func metricNames(pattern, text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return out
}

// Profiles are there where they were asked for, for the token alone.
func TestSideProfiles(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(cfg *config.Config) { cfg.AdminPprof = true }
	}, scrapeToken)
	open := startSide(t, r, "")
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline"} {
		if status, _ := open.get(t, path); status != 401 {
			t.Errorf("%s without the token: %d", path, status)
		}
		if status, body := (side{open.url, "scrape"}).get(t, path); status != 200 || body == "" {
			t.Errorf("%s: %d", path, status)
		}
	}
}
