package edge

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// logWindow is how often one reason is logged; what happens in between is
// counted and told with the next line.
const logWindow = 10 * time.Second

// reasonSlots bounds the reasons there can be.
const reasonSlots = 64

// closeLog counts why connections ended and logs a sample of it.
type closeLog struct {
	log    *zap.Logger
	clock  func() time.Time
	counts [reasonSlots]atomic.Int64

	mu     sync.Mutex // guards sample
	sample [reasonSlots]struct {
		next       time.Time
		suppressed int
	}
}

func (l *closeLog) count(r wire.Reason) int64 { return l.counts[r].Load() }

// add counts one end. If it is logged, of says of which connection; nil: nothing is
// known of it.
func (l *closeLog) add(r wire.Reason, err error, of func() []zap.Field) {
	l.counts[r].Add(1)
	suppressed, ok := l.admit(r)
	if !ok {
		return
	}
	var fields []zap.Field
	if of != nil {
		fields = of()
	}
	fields = append(fields, zap.Stringer("reason", r), zap.String("side", string(r.Side())), zap.Int("suppressed", suppressed))
	if err != nil {
		fields = append(fields, zap.Error(err))
	}
	l.log.Log(level(r), "connection closed", fields...)
}

func (l *closeLog) admit(r wire.Reason) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.sample[r]
	now := l.clock()
	if now.Before(s.next) {
		s.suppressed++
		return 0, false
	}
	suppressed = s.suppressed
	s.next, s.suppressed = now.Add(logWindow), 0
	return suppressed, true
}

// level keeps the ends that are everyday life, and those that balancers' probes
// cause, out of the log.
func level(r wire.Reason) zapcore.Level {
	switch r {
	case wire.ClientClosed, wire.ClientIdle, wire.ClientError, wire.Draining, wire.ConnectionAge, wire.ProbeClosed:
		return zapcore.DebugLevel
	}
	return zapcore.WarnLevel
}
