package api

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// sampleWindow is how often a line is let through; sampledLines bounds the lines
// that are told apart, whose texts are those of this program.
const (
	sampleWindow = time.Minute
	sampledLines = 256
)

// Sampled lets each line through once a minute, told apart by its text: what
// clients cause must not flood the log. The next one says how many were not
// ("suppressed").
func Sampled(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return &sampler{Core: c, lines: &sampled{}}
	}))
}

// sampler is a core that writes some lines only.
type sampler struct {
	zapcore.Core
	lines *sampled
}

type sampled struct {
	mu   sync.Mutex // guards seen
	seen []*sampledLine
}

type sampledLine struct {
	text       string
	next       time.Time
	suppressed int // since the last one
	told       int // before the last one
}

// With implements zapcore.Core; the count stays one.
func (s *sampler) With(fields []zapcore.Field) zapcore.Core {
	return &sampler{Core: s.Core.With(fields), lines: s.lines}
}

// Check implements zapcore.Core.
func (s *sampler) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !s.Enabled(e.Level) || !s.lines.due(e) {
		return ce
	}
	return ce.AddCore(e, s)
}

// Write implements zapcore.Core.
func (s *sampler) Write(e zapcore.Entry, fields []zapcore.Field) error {
	fields = append(fields[:len(fields):len(fields)], zap.Int("suppressed", s.lines.told(e)))
	return s.Core.Write(e, fields)
}

// due reports whether a line may be written, and counts it where not.
func (s *sampled) due(e zapcore.Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.line(e.Message)
	if line == nil {
		if len(s.seen) >= sampledLines {
			s.seen = nil
		}
		line = &sampledLine{text: e.Message}
		s.seen = append(s.seen, line)
	}
	if e.Time.Before(line.next) {
		line.suppressed++
		return false
	}
	line.next = e.Time.Add(sampleWindow)
	line.told, line.suppressed = line.suppressed, 0
	return true
}

// told is how many were not written before the last one.
func (s *sampled) told(e zapcore.Entry) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line := s.line(e.Message); line != nil {
		return line.told
	}
	return 0
}

// line finds a line by its text; there are few, each written rarely.
func (s *sampled) line(text string) *sampledLine {
	for _, line := range s.seen {
		if line.text == text {
			return line
		}
	}
	return nil
}
