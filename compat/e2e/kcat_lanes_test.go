package e2e

import (
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// librdkafka under each lane: it checks the certificate against the name it
// dials, and is told no other.
func TestKcatLanes(t *testing.T) {
	kcat := needKcat(t)
	for _, name := range []string{laneAcme, laneGlobex, laneShared} {
		needName(t, name)
	}
	r := withLanes(t, nil)
	_, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	brokers := regexp.MustCompile(`(?m)^  broker 0 at (\S+)`)
	for _, lane := range []struct{ key, name string }{{rig.Acme, laneAcme}, {rig.Globex, laneGlobex}, {rig.Acme, laneShared}} {
		own, topic := net.JoinHostPort(lane.name, port), "kcat-"+strings.ReplaceAll(lane.name, ".", "-")
		k := kcat.as(t, r, lane.key)
		k.run(strings.NewReader(lane.name+"\n"), "-b", own, "-P", "-t", topic, "-p", "0")
		if out, _ := k.run(nil, "-b", own, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e"); out != lane.name+"\n" {
			t.Errorf("%s: reads %q", lane.name, out)
		}
		out, _ := k.run(nil, "-b", own, "-L")
		if got := brokers.FindAllStringSubmatch(out, -1); len(got) != 1 || got[0][1] != own {
			t.Errorf("%s is told %q, want %s", lane.name, got, own)
		}
	}
}

// needName skips a test whose client resolves names by itself where one does not
// resolve to this machine.
func needName(t *testing.T, name string) {
	t.Helper()
	if addrs, err := net.LookupHost(name); err == nil && addrs[0] == "127.0.0.1" {
		return
	}
	if os.Getenv("QE_REQUIRE") != "" {
		t.Fatalf("%s has to resolve to 127.0.0.1 (a line of /etc/hosts, which .ci/run adds)", name)
	}
	t.Skipf("%s does not resolve to 127.0.0.1 (a line of /etc/hosts)", name)
}
