package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/doctor"
	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
)

// gateway starts a gateway in a process of its own, and tells its address once
// it listens.
type gateway struct {
	*process
	t *testing.T
}

func (g gateway) addr() string { return g.line(g.t, "serve: listening on ") }

func serveTLS(t *testing.T, url string, pair pairFiles, env ...string) gateway {
	t.Helper()
	return gateway{launch(t, append([]string{
		"QUEEN_URL=" + url, "QUEEN_KAFKA_SASL=plain,oauthbearer", "QUEEN_KAFKA_DEFAULT_PARTITIONS=2",
		"QUEEN_KAFKA_TLS_CERT=" + pair.cert, "QUEEN_KAFKA_TLS_KEY=" + pair.key,
	}, env...), "serve", "--addr", "127.0.0.1:0"), t}
}

// serveAdvertising starts a gateway that advertises another address than its
// own: that needs a port that is known beforehand, and may be taken meanwhile.
func serveAdvertising(t *testing.T, url string, pair pairFiles, advertised string) (addr string) {
	t.Helper()
	for range 20 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr = ln.Addr().String()
		_ = ln.Close()
		p := launch(t, []string{
			"QUEEN_URL=" + url, "QUEEN_KAFKA_SASL=plain", "QUEEN_KAFKA_ADDR=" + addr, "QUEEN_KAFKA_ADVERTISED_ADDR=" + advertised,
			"QUEEN_KAFKA_TLS_CERT=" + pair.cert, "QUEEN_KAFKA_TLS_KEY=" + pair.key,
		})
		bound := false
		eventually(t, "a gateway that listens, or cannot", func() bool {
			bound = strings.Contains(p.stdout.String(), "serve: listening on ")
			return bound || strings.Contains(p.stderr.String(), "cannot bind")
		})
		if bound {
			return addr
		}
	}
	t.Fatal("no port to be had")
	return ""
}

// Each broken set-up is named by its step, its cause and its exit code.
func TestDoctorNamesWhatIsBroken(t *testing.T) {
	c := startCell(t, []string{"127.0.0.1"}, nil)
	ca, otherCA := newAuthority(t), newAuthority(t)
	pair := ca.issue(t, later(), "127.0.0.1", "localhost")
	whole, plainText := serveTLS(t, c.url, pair), gateway{launch(t, []string{"QUEEN_URL=" + c.url, "QUEEN_KAFKA_SASL=plain"}, "serve", "--addr", "127.0.0.1:0"), t}
	wrongName, expired := serveTLS(t, c.url, ca.issue(t, later(), "kafka.example.com")), serveTLS(t, c.url, ca.issue(t, time.Now().Add(-time.Hour), "127.0.0.1"))
	noCell := serveTLS(t, "http://"+closedPort(t), pair)
	open := gateway{launch(t, []string{"QUEEN_URL=" + c.url, "QUEEN_TOKEN=" + c.key(t, "acme", allScopes()...)}, "serve", "--addr", "127.0.0.1:0"), t}
	nowhere := closedPort(t)
	elsewhere := serveAdvertising(t, c.url, pair, nowhere)
	dead := closedPort(t)
	token, unknown := c.key(t, "acme", allScopes()...), "qk_live_"+strings.Repeat("x", 43)
	noRead, frozen := c.key(t, "acme", "produce", "consume"), c.key(t, "frozen", allScopes()...)
	reads, writes := c.key(t, "acme", "read", "consume"), c.key(t, "acme", "read", "produce")
	makeTopic(t, whole.addr(), ca, token)

	for _, test := range []struct {
		name string
		args []string
		key  string
		want want
	}{
		{"no such name", []string{"--bootstrap", "no..name:9092"}, token, want{step: "dns", cause: "no_such_name", seen: "no..name"}},
		{"closed port", []string{"--bootstrap", dead}, token, want{step: "tcp", cause: "refused", seen: dead}},
		{"no TLS", []string{"--bootstrap", plainText.addr()}, token, want{step: "tls", cause: "not_tls", seen: "without TLS"}},
		{"expired certificate", []string{"--bootstrap", expired.addr()}, token, want{step: "tls", cause: "expired", seen: "expired"}},
		{"wrong CA", []string{"--bootstrap", whole.addr(), "--ca", otherCA.file}, token, want{step: "tls", cause: "unknown_authority", seen: "an authority"}},
		{"wrong name", []string{"--bootstrap", wrongName.addr()}, token, want{step: "name", cause: "wrong_name", seen: "kafka.example.com"}},
		{"TLS where none is spoken", []string{"--bootstrap", whole.addr(), "--plaintext"}, token, want{step: "kafka", cause: "speaks_tls", seen: "TLS"}},
		{"not Kafka", []string{"--bootstrap", strings.TrimPrefix(c.url, "http://"), "--plaintext", "--timeout", "3s"}, token, want{step: "kafka", cause: "not_kafka", seen: "not as a Kafka broker"}},
		{"bad token", []string{"--bootstrap", whole.addr()}, unknown, want{step: "sasl", cause: "bad_token", seen: "not a valid token"}},
		{"bad token as a bearer", []string{"--bootstrap", whole.addr(), "--mechanism", "oauthbearer"}, unknown, want{step: "sasl", cause: "bad_token", seen: "not a valid token"}},
		{"no token", []string{"--bootstrap", whole.addr()}, "", want{step: "sasl", cause: "no_token", seen: "PLAIN, OAUTHBEARER"}},
		{"another mechanism", []string{"--bootstrap", plainText.addr(), "--plaintext", "--mechanism", "oauthbearer"}, token, want{step: "sasl", cause: "mechanism_not_offered", seen: "PLAIN"}},
		{"no login", []string{"--bootstrap", open.addr(), "--plaintext"}, token, want{step: "sasl", cause: "no_login", seen: "asks for no login"}},
		{"suspended", []string{"--bootstrap", whole.addr()}, frozen, want{step: "sasl", cause: "suspended", seen: "suspended"}},
		{"cell down", []string{"--bootstrap", noCell.addr()}, token, want{step: "sasl", cause: "cell_unavailable", seen: "could not check"}},
		{"missing scope", []string{"--bootstrap", whole.addr()}, noRead, want{step: "scope", cause: "missing_scope", seen: "SCOPE"}},
		{"no such topic", []string{"--bootstrap", whole.addr(), "--topic", "none"}, token, want{step: "metadata", cause: "no_such_topic", seen: "none"}},
		{"advertised address unreachable", []string{"--bootstrap", elsewhere}, token, want{step: "advertised", cause: "refused", seen: "at tcp"}},
		{"may not produce", []string{"--bootstrap", whole.addr(), "--topic", "orders"}, reads, want{step: "produce", cause: "missing_scope", seen: "TOPIC_AUTHORIZATION_FAILED"}},
		{"may not consume", []string{"--bootstrap", whole.addr(), "--topic", "orders", "--skip", "commit"}, writes, want{step: "fetch", cause: "missing_scope", seen: "TOPIC_AUTHORIZATION_FAILED"}},
		{"may not commit", []string{"--bootstrap", whole.addr()}, writes, want{step: "commit", cause: "missing_scope", seen: "GROUP_AUTHORIZATION_FAILED"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"doctor", "--ca", ca.file}, test.args...) // the last --ca counts
			r := examine(t, []string{"QUEEN_KAFKA_CHECK_TOKEN=" + test.key}, []string{test.key}, args...)
			test.want.all = test.want.step != "produce" // then reading and committing may still work
			named(t, r, doctor.Kinds(), test.want)
			if i := slices.IndexFunc(r.Steps, func(s steps.Step) bool { return s.Step == "advertised" }); test.want.step == "advertised" {
				if s := r.Steps[i]; s.At != "tcp" || s.About != "broker 0 at "+nowhere {
					t.Errorf("%+v does not say where, want %s", s, nowhere)
				}
			}
		})
	}
}

// asClient is a franz-go client.
func asClient(t *testing.T, addr string, ca *authority, token string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.DialTLSConfig(&tls.Config{RootCAs: roots}),
		kgo.SASL(plain.Auth{User: "test", Pass: token}.AsMechanism()),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func makeTopic(t *testing.T, addr string, ca *authority, token string) {
	t.Helper()
	if _, err := kadm.NewClient(asClient(t, addr, ca, token)).CreateTopic(within(t), 2, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
}

// A gateway that works passes every step, and is left as it was: one record more
// where one was asked for, and no group.
func TestDoctorFindsNoFault(t *testing.T) {
	c := startCell(t, []string{"127.0.0.1"}, nil)
	ca := newAuthority(t)
	addr := serveTLS(t, c.url, ca.issue(t, later(), "127.0.0.1", "localhost")).addr()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	token := c.key(t, "acme", allScopes()...)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	makeTopic(t, addr, ca, token)
	all := []string{"dns", "tcp", "tls", "name", "kafka", "sasl", "scope", "metadata", "advertised", "produce", "fetch", "commit"}
	withoutTopic := slices.Concat(all[:9], all[11:])
	for _, test := range []struct {
		name string
		args []string
		want []string
	}{
		{"with a topic", []string{"--topic", "orders"}, all},
		{"without a topic", nil, withoutTopic},
		{"by name and as a bearer", []string{"--bootstrap", "localhost:" + port, "--mechanism", "OAUTHBEARER"}, withoutTopic},
		{"reading only", []string{"--topic", "orders", "--skip", "produce,commit"}, slices.Concat(all[:9], all[10:11])},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"doctor", "--bootstrap", addr, "--ca", ca.file, "--token-file", file}, test.args...)
			if taken := healthy(t, examine(t, nil, []string{token}, args...)); !slices.Equal(taken, test.want) {
				t.Errorf("took %v, want %v", taken, test.want)
			}
		})
	}

	client := asClient(t, addr, ca, token, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	records := client.PollFetches(within(t)).Records()
	if len(records) != 1 || !bytes.HasPrefix(records[0].Value, []byte("queen-edge doctor ")) {
		t.Errorf("records %v, want the one that was written", records)
	}
	groups, err := kadm.NewClient(client).ListGroups(within(t))
	if err != nil || len(groups) != 0 {
		t.Errorf("groups %v are left, %v", groups.Groups(), err)
	}
}

// For people there is a line for each step, what to do next, and a verdict; the
// token may come by the standard input.
func TestDoctorTellsPeople(t *testing.T) {
	c := startCell(t, []string{"127.0.0.1"}, nil)
	addr := gateway{launch(t, []string{"QUEEN_URL=" + c.url, "QUEEN_KAFKA_SASL=plain"}, "serve", "--addr", "127.0.0.1:0"), t}.addr()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(c.key(t, "frozen", "read")), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launchUnder(t, "exec < '"+token+"'", nil, "doctor", "--bootstrap", addr, "--plaintext", "--token", "-")
	if code := p.wait(t); code != 15 {
		t.Errorf("exit code %d", code)
	}
	for _, text := range []string{
		"ok       kafka         ", "FAILED   sasl          Authentication failed: the cluster of this token is suspended",
		"                       next: ", "skipped  commit        not come to\n", "doctor " + addr + ": the step that fails is sasl (suspended)\n",
	} {
		if !strings.Contains(p.stdout.String(), text) {
			t.Errorf("no %q in\n%s", text, p.stdout)
		}
	}
}
