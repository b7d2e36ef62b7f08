package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/check"
	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
)

// answering lets a server say one thing to everything.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// withoutGrant stands before a cell that has no grant of keys and values: its
// broker's answer (cell-http §4.7).
func withoutGrant(cell http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/kv" {
			cell.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":"feature_gated","detail":"kv is not enabled for this tenant"}`)
	})
}

// withoutConditions stands before a cell and takes the conditions out of what
// it is asked.
func withoutConditions(cell http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		body = bytes.ReplaceAll(body, []byte(`,"expect":1`), nil)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		cell.ServeHTTP(w, r)
	})
}

// Each broken configuration is named by its step, its cause and its exit code.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	shared := []string{"127.0.0.1"}
	c, dedicated := startCell(t, shared, nil), startCell(t, nil, nil)
	ungranted, careless := startCell(t, shared, withoutGrant), startCell(t, shared, withoutConditions)
	secure := httptest.NewUnstartedServer(c.Handler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that are broken off
	secure.StartTLS()
	t.Cleanup(secure.Close)
	ca := newAuthority(t)
	good, other := ca.issue(t, later(), "edge.example.com"), ca.issue(t, later(), "edge.example.com")
	old, foreign := ca.issue(t, time.Now().Add(-time.Hour), "edge.example.com"), ca.issue(t, later(), "kafka.example.com")
	token, unknown := c.key(t, "acme", allScopes()...), "qk_live_"+strings.Repeat("x", 43)
	dead := "http://" + closedPort(t)

	pair := func(p pairFiles) []string {
		return []string{"QUEEN_KAFKA_TLS_CERT=" + p.cert, "QUEEN_KAFKA_TLS_KEY=" + p.key}
	}
	forward := func(name string) []string {
		return append(pair(ca.issue(t, later(), name)), "QUEEN_KAFKA_FORWARD_SNI_HOST=true", "QUEEN_KAFKA_ADVERTISED_ADDR="+name+":9093")
	}
	at := func(url string, more ...string) []string { return append([]string{"QUEEN_URL=" + url}, more...) }
	for _, test := range []struct {
		name string
		env  []string // after what a good configuration has
		key  string
		want want
	}{
		{"bad variable", []string{"QUEEN_KAFKA_MAX_CONNECTIONS=3"}, token, want{step: "configuration", cause: "bad_variable", seen: "QUEEN_KAFKA_MAX_CONNECTIONS"}},
		{"missing key", []string{"QUEEN_KAFKA_TLS_CERT=" + good.cert}, token, want{step: "configuration", cause: "bad_variable", seen: "QUEEN_KAFKA_TLS_KEY"}},
		{"bad cell URL", at("ftp://x"), token, want{step: "configuration", cause: "bad_variable", seen: "QUEEN_URL", all: false}},
		{"no such key file", pair(pairFiles{good.cert, "/nowhere.key"}), token, want{step: "certificate", cause: "missing_file", seen: "/nowhere.key"}},
		{"no certificate in the file", pair(pairFiles{good.key, good.key}), token, want{step: "certificate", cause: "bad_pair", seen: good.key}},
		{"mismatched pair", pair(pairFiles{good.cert, other.key}), token, want{step: "certificate", cause: "mismatched_pair", seen: "does not belong"}},
		{"the authority's certificate first", pair(reordered(t, good)), token, want{step: "certificate", cause: "chain_order", seen: "certificate 2"}},
		{"a chain with a foreign certificate", pair(chained(t, good, other)), token, want{step: "certificate", cause: "chain_order", seen: "not signed by the one after it"}},
		{"expired certificate", pair(old), token, want{step: "certificate", cause: "expired", seen: "expired"}},
		{"a certificate for another name", pair(foreign), token, want{step: "certificate", cause: "wrong_name", seen: "edge.example.com"}},
		{"a folder with a bad pair", append(pair(good), "QUEEN_KAFKA_TLS_DIR="+badFolder(t)), token, want{step: "certificate", cause: "bad_pair", seen: "a.example.crt"}},
		{"a lane without a certificate", []string{"QUEEN_KAFKA_TLS_DIR=" + filepath.Dir(good.cert), "QUEEN_KAFKA_LANES=edge.example.com"}, token, want{step: "certificate", cause: "wrong_name", seen: "edge.example.com"}},
		{"a lane that the default certificate is not for", append(pair(good), "QUEEN_KAFKA_LANES=edge.example.com,b.example.com"), token, want{step: "certificate", cause: "wrong_name", seen: "clients dial b.example.com"}},
		{"bad ticket keys", append(pair(good), "QUEEN_KAFKA_TLS_TICKET_KEYS="+good.cert), token, want{step: "certificate", cause: "bad_ticket_keys", seen: "line 1 is not 32 bytes"}},
		{"cell unreachable", at(dead), token, want{step: "cell", cause: "refused", seen: dead, all: true}},
		{"no such cell", at("http://no..cell"), token, want{step: "cell", cause: "no_such_name", seen: "no..cell", all: true}},
		{"cell not trusted", at(secure.URL), token, want{step: "cell", cause: "untrusted", seen: "not trusted", all: true}},
		{"cell without TLS", at(strings.Replace(c.url, "http:", "https:", 1)), token, want{step: "cell", cause: "not_https", seen: "no TLS", all: true}},
		{"not a cell", at(answering(t, 200, "<html>It works!</html>")), token, want{step: "cell", cause: "not_a_cell", seen: "no queue listing", all: true}},
		{"a page that is not there", at(answering(t, 404, "not found")), token, want{step: "cell", cause: "not_a_cell", seen: "HTTP 404", all: true}},
		{"a path too many", at(c.url + "/api"), token, want{step: "cell", cause: "not_a_cell", seen: "HTTP 404", all: true}},
		{"a redirect", at(answering(t, 301, "")), token, want{step: "cell", cause: "not_a_cell", seen: "redirects", all: true}},
		{"no broker behind the cell", at(answering(t, 502, `{"error":"upstream unreachable","code":"bad_gateway"}`)), token, want{step: "cell", cause: "cell_unavailable", seen: "upstream", all: true}},
		{"bad token", nil, unknown, want{step: "token", cause: "bad_token", seen: "unknown or revoked", all: true}},
		{"bad token on a name of a suspended cluster", forward("frozen.localhost"), unknown, want{step: "token", cause: "bad_token", all: true}},
		{"suspended", nil, c.key(t, "frozen", allScopes()...), want{step: "token", cause: "suspended", seen: "suspended", all: true}},
		{"a token that may not read", nil, c.key(t, "acme", "consume"), want{step: "token", cause: "missing_scope", seen: "HTTP 403", all: true}},
		{"a Host that is refused for this tenant", forward("globex.localhost"), token, want{step: "host", cause: "other_cluster", seen: "mismatch", all: true}},
		{"a Host that nobody serves", forward("kafka.example.com"), token, want{step: "host", cause: "unknown_host", seen: "HTTP 421", all: true}},
		{"a cell that wants a name", at(dedicated.url), dedicated.key(t, "acme", allScopes()...), want{step: "host", cause: "unknown_host", seen: "HTTP 421", all: true}},
		{"KV not granted", at(ungranted.url), ungranted.key(t, "acme", allScopes()...), want{step: "kv", cause: "kv_not_granted", seen: "feature_gated"}},
		{"a token that may not consume", nil, c.key(t, "acme", "produce", "read"), want{step: "kv", cause: "missing_scope", seen: "HTTP 403"}},
		{"a cell that ignores conditions", at(careless.url), careless.key(t, "acme", allScopes()...), want{step: "kv", cause: "condition_ignored", seen: "wrote a row"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{
				"QUEEN_URL=" + c.url, "QUEEN_KAFKA_SASL=plain", "QUEEN_KAFKA_ADVERTISED_ADDR=edge.example.com:9093",
				"QUEEN_KAFKA_CHECK_TOKEN=" + test.key,
			}, test.env...)
			named(t, examine(t, env, []string{test.key}, "check"), check.Kinds(), test.want)
		})
	}
}

// reordered is a pair whose file has the certificates the wrong way round.
func reordered(t *testing.T, p pairFiles) pairFiles {
	t.Helper()
	blocks := blocksOf(t, p.cert)
	slices.Reverse(blocks)
	return pairFiles{writeBlocks(t, blocks), p.key}
}

// chained is a pair whose file goes on with another server's certificate.
func chained(t *testing.T, p, other pairFiles) pairFiles {
	t.Helper()
	return pairFiles{writeBlocks(t, []*pem.Block{blocksOf(t, p.cert)[0], blocksOf(t, other.cert)[0]}), p.key}
}

func blocksOf(t *testing.T, path string) []*pem.Block {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []*pem.Block
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		blocks = append(blocks, b)
	}
	return blocks
}

func writeBlocks(t *testing.T, blocks []*pem.Block) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tls.crt")
	var text []byte
	for _, b := range blocks {
		text = append(text, pem.EncodeToMemory(b)...)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Problems that have nothing to do with each other are told in one run: two
// variables, a certificate for another name, and a cell without a grant. The
// exit code is the first one's.
func TestCheckTellsAllProblemsAtOnce(t *testing.T) {
	c := startCell(t, []string{"127.0.0.1"}, withoutGrant)
	pair := newAuthority(t).issue(t, time.Now().Add(-time.Hour), "kafka.example.com")
	token := c.key(t, "acme", allScopes()...)
	r := examine(t, []string{
		"QUEEN_URL=" + c.url, "QUEEN_KAFKA_ADVERTISED_ADDR=edge.example.com:9093", "QUEEN_KAFKA_SASL=kerberos", "QUEEN_KAFKA_MAX_CONNECTIONS=3",
		"QUEEN_KAFKA_TLS_CERT=" + pair.cert, "QUEEN_KAFKA_TLS_KEY=" + pair.key, "QUEEN_KAFKA_CHECK_TOKEN=" + token,
	}, []string{token}, "check")
	var got []string
	for _, s := range r.Steps {
		if s.Status == steps.Failed {
			got = append(got, s.Step+" "+s.Cause+" "+s.About)
		}
	}
	want := []string{
		"configuration bad_variable QUEEN_KAFKA_MAX_CONNECTIONS", "configuration bad_variable QUEEN_KAFKA_SASL",
		"certificate expired " + pair.cert, "certificate wrong_name " + pair.cert, "kv kv_not_granted ",
	}
	slices.Sort(got[:min(2, len(got))])
	if !slices.Equal(got, want) || r.ExitCode != 30 {
		t.Errorf("exit code %d, problems %q, want %q", r.ExitCode, got, want)
	}
}

// A configuration that works passes, and the cell is as it was: no row, no
// queue.
func TestCheckFindsNoFault(t *testing.T) {
	c := startCell(t, []string{"127.0.0.1"}, nil)
	ca := newAuthority(t)
	pair := ca.issue(t, later(), "*.localhost")
	token := c.key(t, "acme", allScopes()...)
	tlsOn := []string{"QUEEN_KAFKA_TLS_CERT=" + pair.cert, "QUEEN_KAFKA_TLS_KEY=" + pair.key, "QUEEN_KAFKA_ADVERTISED_ADDR=acme.localhost:9093"}
	all := []string{"configuration", "certificate", "cell", "token", "host", "kv"}
	for _, test := range []struct {
		name string
		env  []string
		args []string
		want []string
	}{
		{"a shared name", append(tlsOn, "QUEEN_KAFKA_SASL=plain"), nil, all},
		{"the cluster's name", append(tlsOn, "QUEEN_KAFKA_SASL=plain", "QUEEN_KAFKA_FORWARD_SNI_HOST=true"), []string{"--host", "ACME.localhost."}, all},
		{"the gateway's own token", append(tlsOn, "QUEEN_TOKEN="+token, "QUEEN_KAFKA_CHECK_TOKEN= "), nil, all},
		{"no token", append(tlsOn, "QUEEN_KAFKA_SASL=plain", "QUEEN_KAFKA_CHECK_TOKEN="), nil, all[:3]},
		{"no TLS", []string{"QUEEN_KAFKA_ADVERTISED_ADDR=localhost:9092"}, nil, slices.Concat(all[:1], all[2:])},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := append([]string{"QUEEN_URL=" + c.url, "QUEEN_KAFKA_CHECK_TOKEN=" + token}, test.env...)
			if taken := healthy(t, examine(t, env, []string{token}, append([]string{"check"}, test.args...)...)); !slices.Equal(taken, test.want) {
				t.Errorf("took %v, want %v", taken, test.want)
			}
		})
	}
	for path, empty := range map[string]string{
		"/api/v1/kv":               `"rows":[]`,
		"/api/v1/resources/queues": `"queues":[]`,
	} {
		if body := askCell(t, c.url+path, token); !strings.Contains(body, empty) {
			t.Errorf("%s holds something: %s", path, body)
		}
	}
}

// askCell asks for every row of the gateway's keys, or for the queues.
func askCell(t *testing.T, url, token string) string {
	t.Helper()
	method, body := http.MethodGet, ""
	if strings.HasSuffix(url, "/kv") {
		method, body = http.MethodPost, `{"operations":[{"op":"getPrefix","ns":"queen-kafka","prefix":"qk:","limit":1000}]}`
	}
	req, err := http.NewRequestWithContext(within(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("HTTP %d, %v: %s", resp.StatusCode, err, text)
	}
	return string(text)
}
