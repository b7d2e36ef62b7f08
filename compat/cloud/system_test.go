package cloud

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell"
)

// system is what the scenarios are run against.
type system struct {
	*rig.Rig
	run       string                    // in names, so that runs on one cell do not meet
	own       bool                      // stood up here, and not somebody else's
	unset     []string                  // variables that are missing
	announced map[int16]int16           // APIs of the gateway, and their highest versions
	admin     func() cell.Administrator // nil: nobody can change a limit from here
	log       *logLines                 // of an own system
	skipped   string                    // why the last scenario was, if it was
}

// The variables, as the demo's env file has them.
const (
	varBootstrap = "QUEEN_EDGE_BOOTSTRAP"
	varCA        = "QUEEN_EDGE_CA"
	varCellURL   = "QUEEN_EDGE_CELL_URL"
	varCellData  = "QUEEN_EDGE_CELL_DATA"
)

// tokenVar is the variable of one of the rig's keys.
func tokenVar(key string) string {
	return "QUEEN_EDGE_TOKEN_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// open stands a system up, unless variables name another.
func open(t *testing.T) *system {
	t.Helper()
	values := map[string]string{
		varBootstrap:          os.Getenv("QUEEN_EDGE_BOOTSTRAP"),
		varCA:                 os.Getenv("QUEEN_EDGE_CA"),
		varCellURL:            os.Getenv("QUEEN_EDGE_CELL_URL"),
		varCellData:           os.Getenv("QUEEN_EDGE_CELL_DATA"),
		tokenVar(rig.Acme):    os.Getenv("QUEEN_EDGE_TOKEN_ACME"),
		tokenVar(rig.Acme2):   os.Getenv("QUEEN_EDGE_TOKEN_ACME_2"),
		tokenVar(rig.Consume): os.Getenv("QUEEN_EDGE_TOKEN_ACME_CONSUME"),
		tokenVar(rig.Produce): os.Getenv("QUEEN_EDGE_TOKEN_ACME_PRODUCE"),
		tokenVar(rig.Txn):     os.Getenv("QUEEN_EDGE_TOKEN_ACME_TXN"),
		tokenVar(rig.NoRead):  os.Getenv("QUEEN_EDGE_TOKEN_ACME_NOREAD"),
		tokenVar(rig.Globex):  os.Getenv("QUEEN_EDGE_TOKEN_GLOBEX"),
	}
	s := &system{run: strconv.FormatInt(time.Now().UnixNano(), 36)}
	for name, value := range values {
		if value == "" {
			s.unset = append(s.unset, name)
		}
	}
	if len(s.unset) == len(values) {
		s.standUp(t)
	} else {
		s.reach(t, values)
	}
	s.announced = s.versions(t)
	return s
}

// standUp starts a cell and a gateway in this process.
func (s *system) standUp(t *testing.T) {
	s.own, s.unset, s.log = true, nil, new(logLines)
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	s.Rig = rig.Start(t, func(o *rig.Options) {
		o.Log = zap.New(zapcore.NewCore(encoder, s.log, zap.DebugLevel))
		o.Config = func(c *config.Config) { c.Group.JoinDelay = 0 }
	})
	s.admin = func() cell.Administrator { return s.Cell.Admin() }
}

// reach points at a system that somebody else runs.
func (s *system) reach(t *testing.T, values map[string]string) {
	keys := map[string]string{}
	for _, key := range []string{rig.Acme, rig.Acme2, rig.Consume, rig.Produce, rig.Txn, rig.NoRead, rig.Globex} {
		keys[key] = values[tokenVar(key)]
	}
	s.Rig = rig.At(t, rig.Elsewhere{
		Bootstrap: values[varBootstrap], CAFile: values[varCA], CellURL: strings.TrimRight(values[varCellURL], "/"), Keys: keys,
	})
	if dir := values[varCellData]; dir != "" {
		admin, err := cell.OpenAdmin(dir, false)
		if err != nil {
			t.Fatalf("%s: %v", varCellData, err)
		}
		t.Cleanup(func() { must(t, admin.Close()) })
		s.admin = func() cell.Administrator { return admin }
	}
}

// versions asks the gateway for its APIs.
func (s *system) versions(t *testing.T) map[int16]int16 {
	out := map[int16]int16{}
	if s.Roots == nil {
		return out
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, "cloud", "1"
	for _, k := range s.Dial(t).Ask(req).(*kmsg.ApiVersionsResponse).ApiKeys {
		out[k.ApiKey] = k.MaxVersion
	}
	return out
}

// name is one that no other run has.
func (s *system) name(base string) string { return base + "-" + s.run }

// reply is an answer of the cell.
type reply struct {
	status int
	body   string
}

// call asks the cell itself, as the gateway would with one of the keys.
func (s *system) call(t *testing.T, key, method, path, body string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(rig.Context(t), method, s.CellURL+path, strings.NewReader(body))
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+s.Key(key))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	return reply{status: resp.StatusCode, body: string(text)}
}

// want checks an answer's status and a part of its body.
func (r reply) want(t *testing.T, what string, status int, part string) {
	t.Helper()
	if r.status != status || !strings.Contains(r.body, part) {
		t.Errorf("%s: %d %.300s; want %d with %s", what, r.status, r.body, status, part)
	}
}

// cluster is what /auth/me says of a key.
func (s *system) cluster(t *testing.T, key string) (id, slug string) {
	t.Helper()
	var me struct {
		Acting struct{ ID, Slug string } `json:"acting_cluster"`
	}
	r := s.call(t, key, http.MethodGet, "/auth/me", "")
	if err := json.Unmarshal([]byte(r.body), &me); err != nil || r.status != http.StatusOK || me.Acting.ID == "" {
		t.Fatalf("/auth/me of %s: %d %.300s", key, r.status, r.body)
	}
	return me.Acting.ID, me.Acting.Slug
}

// do is an administrative act on the cell.
func (s *system) do(t *testing.T, r cell.AdminRequest) cell.AdminResponse {
	t.Helper()
	done, err := s.admin().Do(r)
	must(t, err)
	return done
}

// limit overrides limits of a key's cluster until lift, or the test's end.
func (s *system) limit(t *testing.T, key string, limits map[string]string) (lift func()) {
	t.Helper()
	_, slug := s.cluster(t, key)
	before := map[string]json.RawMessage{}
	for _, c := range s.do(t, cell.AdminRequest{Op: cell.OpClusterList}).Clusters {
		if c.Slug == slug {
			before = c.Overrides
		}
	}
	set := cell.AdminRequest{Op: cell.OpClusterLimit, Cluster: slug, Limits: map[string]json.RawMessage{}}
	back := cell.AdminRequest{Op: cell.OpClusterLimit, Cluster: slug, Limits: map[string]json.RawMessage{}}
	for name, value := range limits {
		set.Limits[name] = json.RawMessage(value)
		if old, ok := before[name]; ok {
			back.Limits[name] = old
		} else {
			back.Unset = append(back.Unset, name)
		}
	}
	lift = sync.OnceFunc(func() { s.do(t, back) })
	t.Cleanup(lift)
	s.do(t, set)
	return lift
}

// withoutKV sees to it that a key's cluster has a plan without the kv feature,
// for the length of the test.
func (s *system) withoutKV(t *testing.T, key string) {
	t.Helper()
	if r := s.plainKV(t, key); r.status == http.StatusForbidden {
		return
	}
	if s.admin == nil {
		s.skip(t, "the plan of this cell has the kv feature, and "+varCellData+" is not set to change it")
	}
	_, slug := s.cluster(t, key)
	for _, c := range s.do(t, cell.AdminRequest{Op: cell.OpClusterList}).Clusters {
		if c.Slug == slug {
			t.Cleanup(func() { s.do(t, cell.AdminRequest{Op: cell.OpClusterPlan, Cluster: slug, Plan: c.Plan}) })
		}
	}
	s.do(t, cell.AdminRequest{Op: cell.OpClusterPlan, Cluster: slug, Plan: "pro"})
}

// plainKV reads a key that is no gateway's own.
func (s *system) plainKV(t *testing.T, key string) reply {
	t.Helper()
	return s.call(t, key, http.MethodPost, "/api/v1/kv", `{"operations":[{"op":"getMany","ns":"app","keys":["k"]}]}`)
}

// logLines collects log lines.
type logLines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Sync is for zapcore.WriteSyncer.
func (l *logLines) Sync() error { return nil }

// all are the lines so far.
func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.b.String()), "\n")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
