package edge

import (
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/queen-mq/queen-edge/edge/wire"
)

func newCloseLog(level zapcore.Level) (*closeLog, *observer.ObservedLogs, *time.Time) {
	core, logs := observer.New(level)
	now := time.Unix(1_800_000_000, 0)
	l := &closeLog{log: zap.New(core)}
	l.clock = func() time.Time { return now }
	return l, logs, &now
}

// A reason is logged at most once in ten seconds; the next line says how many
// were not. Each is counted.
func TestCloseLogSamples(t *testing.T) {
	l, logs, now := newCloseLog(zap.DebugLevel)
	for range 100 {
		l.add(wire.TLSFailed, errors.New("bad record"), func() []zap.Field {
			return []zap.Field{zap.String("user", "u"), zap.String("peer", "10.0.0.1:5")}
		})
		l.add(wire.Malformed, nil, nil)
	}
	if logs.Len() != 2 || l.count(wire.TLSFailed) != 100 || l.count(wire.Malformed) != 100 || l.count(wire.ClientCut) != 0 {
		t.Fatalf("%d lines, %d and %d counted", logs.Len(), l.count(wire.TLSFailed), l.count(wire.Malformed))
	}
	*now = now.Add(logWindow - 1)
	l.add(wire.TLSFailed, nil, nil)
	*now = now.Add(1)
	l.add(wire.TLSFailed, nil, nil)
	*now = now.Add(logWindow)
	l.add(wire.TLSFailed, nil, nil)
	lines := logs.All()
	if len(lines) != 4 {
		t.Fatalf("%d lines", len(lines))
	}
	first, second, third := lines[0].ContextMap(), lines[2].ContextMap(), lines[3].ContextMap()
	if first["reason"] != "tls_failed" || first["side"] != "client" || first["peer"] != "10.0.0.1:5" ||
		first["error"] != "bad record" || first["user"] != "u" || first["suppressed"] != int64(0) {
		t.Errorf("the first line is %v", first)
	}
	if second["suppressed"] != int64(100) || third["suppressed"] != int64(0) {
		t.Errorf("suppressed %v, then %v", second["suppressed"], third["suppressed"])
	}
	if _, there := second["peer"]; there {
		t.Error("an unknown peer is named")
	}
}

// Every reason there is can be counted, and what is everyday life is not warned
// about.
func TestCloseLogKnowsEveryReason(t *testing.T) {
	l, logs, _ := newCloseLog(zap.WarnLevel)
	everyday := map[wire.Reason]bool{
		wire.ClientClosed: true, wire.ClientIdle: true, wire.ClientError: true, wire.Draining: true, wire.ConnectionAge: true,
		wire.ProbeClosed: true,
	}
	reasons := 0
	for r := wire.Reason(0); r.String() != "unknown"; r++ {
		before := logs.Len()
		l.add(r, nil, nil)
		if warned := logs.Len() > before; warned == everyday[r] {
			t.Errorf("%s: warned %v", r, warned)
		}
		if l.count(r) != 1 {
			t.Errorf("%s is not counted", r)
		}
		reasons++
	}
	if reasons < 20 || reasons > reasonSlots {
		t.Errorf("%d reasons for %d slots", reasons, reasonSlots)
	}
}

func TestCloseLogFromManyConnections(t *testing.T) {
	l, logs, now := newCloseLog(zap.DebugLevel)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 200 {
				l.add(wire.Malformed, nil, nil)
			}
		})
	}
	wg.Wait()
	*now = now.Add(logWindow)
	l.add(wire.Malformed, nil, nil)
	if logs.Len() != 2 || l.count(wire.Malformed) != 3201 || logs.All()[1].ContextMap()["suppressed"] != int64(3199) {
		t.Errorf("%d lines, %d counted, then %v", logs.Len(), l.count(wire.Malformed), logs.All()[logs.Len()-1].ContextMap())
	}
}
