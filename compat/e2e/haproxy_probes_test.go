package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// haproxyProbes is how many of HAProxy's checks each gateway meets.
const haproxyProbes = 2000

// H: HAProxy's own checks of a gateway's port find it up, and are nothing but a
// counter to it: those that connect and go, those that say the header of a
// connection of HAProxy's own before (LOCAL, in version 1 UNKNOWN), those that
// finish a TLS handshake; and as many that are made by hand. Those that ask /readyz do not count at all.
func TestHAProxyProbesAreQuiet(t *testing.T) {
	const tls = " check-ssl verify none check-sni " + rig.Host
	for _, c := range []struct {
		name       string
		proxy      bool
		often, one []string // checks
	}{
		{
			"headers are required", true,
			[]string{"check", "check send-proxy", "check send-proxy-v2", "check check-send-proxy"},
			[]string{"check send-proxy" + tls, "check send-proxy-v2" + tls, "check send-proxy-v2-ssl-cn" + tls},
		},
		{"no headers", false, []string{"check"}, []string{"check" + tls}},
	} {
		t.Run(c.name, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			r := rig.Start(t, func(o *rig.Options) {
				if o.Log = zap.New(core); c.proxy {
					behindBalancer("127.0.0.1/32", o.Log)(o)
				}
			})
			ready := startSide(t, r, "")
			rig.Eventually(t, "readiness", func() bool { status, _ := ready.get(t, "/readyz"); return status == 200 })
			logs.TakeAll()

			if c.proxy {
				h := checkedBy(t, r.Addr, manyTimes(c.often)...)
				rig.Eventually(t, "that many probes", func() bool { return r.Gateway.Closed(wire.ProbeClosed) >= haproxyProbes })
				h.stop()
			} else {
				// HAProxy resets these before the last segment of TCP's handshake, and mostly
				// the kernel keeps them to itself.
				for range haproxyProbes {
					connectAndReset(t, r)
				}
				wireCounted(t, r, wire.ProbeClosed, haproxyProbes)
			}
			judge := func(check, good string) {
				h := checkedBy(t, r.Addr, check+" inter 1m")
				rig.Eventually(t, "the end of "+check, func() bool { return h.servers()["b-0/gateway"]["check_status"] == good })
				if status := h.servers()["b-0/gateway"]["status"]; status != "UP" {
					t.Errorf("by %s the gateway is %s", check, status)
				}
				h.stop()
			}
			for _, check := range c.often {
				judge(check, "L4OK")
			}
			for _, check := range c.one {
				judge(check, "L6OK")
			}
			counted := r.Gateway.Accepted()
			judge("check addr 127.0.0.1 port "+ready.url[strings.LastIndex(ready.url, ":")+1:], "L7OK")
			if n := r.Gateway.Accepted(); n != counted {
				t.Errorf("a check of /readyz is %d connections of Kafka's", n-counted)
			}
			rig.Eventually(t, "the last one is gone", func() bool { return r.Gateway.Connections() == 0 })
			probes, all := r.Gateway.Closed(wire.ProbeClosed), r.Gateway.Accepted()
			if probes != all {
				t.Errorf("%d connections have come, %d count as probes", all, probes)
			}
			t.Logf("%d probes, %d lines at debug in the log", probes, logs.Len())
			for _, e := range logs.All() {
				if e.Level > zapcore.DebugLevel {
					t.Errorf("logged: %s %s %v", e.Level, e.Message, e.ContextMap())
				}
			}
		})
	}
}

// manyTimes are checks as often as HAProxy is asked for them.
func manyTimes(checks []string) (out []string) {
	for i := range 12 {
		out = append(out, checks[i%len(checks)]+" inter 10ms")
	}
	return out
}

// checkedBy is HAProxy that checks a gateway in some ways: backends b-0, b-1 and so
// on, each with a server called gateway. Those with a port ask /readyz there. A
// check's interval is its patience as well: what is judged needs a long one.
func checkedBy(t *testing.T, addr string, checks ...string) *haproxy {
	t.Helper()
	text := "defaults\n\tmode tcp\n\ttimeout connect 1m\n\ttimeout check 1m\n\ttimeout client 1m\n\ttimeout server 1m\n"
	for i, check := range checks {
		text += fmt.Sprintf("backend b-%d\n", i)
		if strings.Contains(check, " port ") {
			text += "\toption httpchk\n\thttp-check send meth GET uri /readyz\n\thttp-check expect status 200\n"
		}
		text += fmt.Sprintf("\tserver gateway %s %s\n", addr, check)
	}
	path := filepath.Join(t.TempDir(), "probes.cfg")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHAProxy(t)
	h.start(path)
	return h
}

func connectAndReset(t *testing.T, r *rig.Rig) {
	t.Helper()
	conn, err := from(t.Context(), r, "127.0.0.1")
	if err == nil {
		err = conn.(*net.TCPConn).SetLinger(0)
	}
	if err == nil {
		err = conn.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
