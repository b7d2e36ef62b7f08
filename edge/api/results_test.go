package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/proxyclient"
)

// The table of cell-http §6, row by row: what a client is told for what the cell
// answered.
func TestResults(t *testing.T) {
	transport := &proxyclient.Error{Kind: proxyclient.KindTransport, RetryAfter: -1, Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
	for _, test := range []struct {
		err                  error
		produce, read, group int16
	}{
		{transport, 7, 6, 15},
		{fmt.Errorf("wrapped: %w", transport), 7, 6, 15},
		{context.Canceled, 7, 6, 15},
		{context.DeadlineExceeded, 7, 6, 15},
		{answered(400), -1, -1, -1},
		{answered(401), 29, 29, 30},
		{answered(403), 29, 29, 30},
		{answered(404), 3, 3, -1},
		{answered(405), -1, -1, -1},
		{answered(408), 7, 6, 15},
		{answered(409), -1, -1, -1},
		{answered(413), 10, -1, -1},
		{answered(421), -1, -1, -1},
		{answered(429), 7, 6, 15},
		{answered(500), -1, -1, -1},
		{answered(502), 5, 6, 15},
		{answered(503), 5, 6, 15},
		{answered(504), 5, 6, 15},
		{answered(507), -1, -1, -1},
		{answered(200), -1, -1, -1},
		{&proxyclient.Error{Kind: proxyclient.KindBody, Status: 200, RetryAfter: -1}, -1, -1, -1},
		{&proxyclient.Error{Kind: proxyclient.KindBody, Status: 503, RetryAfter: -1}, -1, -1, -1},
		{errors.New("anything"), -1, -1, -1},
		{offsets.ErrUnread, -1, -1, 14},
		{offsets.ErrFull, -1, -1, 14},
	} {
		if got := produceCodes.of(test.err).code; got != test.produce {
			t.Errorf("%v: produce is answered %d, want %d", test.err, got, test.produce)
		}
		if got := readCodes.of(test.err).code; got != test.read {
			t.Errorf("%v: fetch is answered %d, want %d", test.err, got, test.read)
		}
		if got := groupCodes.of(test.err).code; got != test.group {
			t.Errorf("%v: a commit is answered %d, want %d", test.err, got, test.group)
		}
		_, ofCell := proxyclient.AsError(test.err)
		if got := produceCodes.of(test.err).message; (got != nil) != ofCell {
			t.Errorf("%v: message %v", test.err, got)
		}
	}
}

func answered(status int) *proxyclient.Error {
	return &proxyclient.Error{Kind: proxyclient.KindStatus, Status: status, RetryAfter: -1, Text: "why"}
}

// Every code of a column is declared in the rows that use it.
func TestResultsAreDeclared(t *testing.T) {
	h := New(Config{})
	for key, column := range map[int16]codes{
		0: produceCodes, 1: readCodes, 2: readCodes, 8: groupCodes, 9: positionCodes, 15: groupCodes, 42: groupCodes, 47: groupCodes, 19: createCodes, 20: createCodes,
		32: configCodes, 33: configCodes, 35: configCodes, 37: configCodes, 44: configCodes, 74: configCodes,
	} {
		for kind, e := range column {
			declared := false
			for _, code := range h.row(key).Codes {
				declared = declared || code == e.Code
			}
			if !declared {
				t.Errorf("failure %d of key %d is %s, which its row does not declare", kind, key, e.Message)
			}
		}
	}
	for kind := noAnswer; kind <= unexpected; kind++ {
		if produceCodes[kind] == nil || readCodes[kind] == nil || groupCodes[kind] == nil || positionCodes[kind] == nil || createCodes[kind] == nil || configCodes[kind] == nil {
			t.Errorf("failure %d has no code", kind)
		}
	}
}

// Only a 429 throttles, for 1 to 30 seconds.
func TestThrottle(t *testing.T) {
	for _, test := range []struct {
		status int
		after  time.Duration
		ms     int32
	}{
		{429, -1, 1000},
		{429, 0, 1000},
		{429, time.Millisecond, 1000},
		{429, time.Second, 1000},
		{429, 5 * time.Second, 5000},
		{429, 30 * time.Second, 30_000},
		{429, time.Hour, 30_000},
		{429, 1 << 62, 30_000},
		{503, 5 * time.Second, 0},
		{403, 5 * time.Second, 0},
	} {
		e := answered(test.status)
		e.RetryAfter = test.after
		if got := throttleOf(e); got != test.ms {
			t.Errorf("%d after %v: %d ms, want %d", test.status, test.after, got, test.ms)
		}
		if got := produceCodes.of(fmt.Errorf("wrapped: %w", e)).throttle; got != test.ms {
			t.Errorf("%d after %v, wrapped: %d ms, want %d", test.status, test.after, got, test.ms)
		}
	}
	if got := throttleOf(errors.New("anything")); got != 0 {
		t.Errorf("%d ms without a cell's answer", got)
	}
}

// What the cell said of one partition's records is its base offset, or why it
// has none. Offsets are never guessed (B3).
func TestVerdict(t *testing.T) {
	queued := func(offsets ...int64) (out []proxyclient.PushResult) {
		for _, o := range offsets {
			out = append(out, proxyclient.PushResult{Status: proxyclient.PushQueued, Offset: o})
		}
		return out
	}
	duplicate := func(offsets ...int64) []proxyclient.PushResult {
		out := queued(offsets...)
		for i := range out {
			out[i].Status = proxyclient.PushDuplicate
		}
		return out
	}
	buffered := []proxyclient.PushResult{{Status: proxyclient.PushBuffered, Offset: -1}}
	for _, test := range []struct {
		what      string
		own       []proxyclient.PushResult
		sequenced bool
		base      int64
		code      int16
	}{
		{"nothing", nil, false, -1, 0},
		{"new", queued(5, 6, 7), false, 5, 0},
		{"new at 0", queued(0), true, 0, 0},
		{"a gap", queued(5, 7), false, -1, -1},
		{"backwards", queued(6, 5), true, -1, -1},
		{"no offsets", queued(-1, -1), false, -1, -1},
		{"known", duplicate(5, 6), true, 5, 0},
		{"known, no offset", duplicate(-1, -1), true, -1, 0},
		{"known, a gap", duplicate(5, 9), true, -1, 0},
		{"partly known", append(duplicate(5), queued(6)...), true, -1, 0},
		{"partly known, apart", append(duplicate(5), queued(9)...), true, -1, 0},
		{"known though no producer", duplicate(-1), false, -1, -1},
		{"buffered", buffered, false, -1, 7},
		{"partly buffered", append(queued(5), buffered...), true, -1, 7},
		{"not stored", []proxyclient.PushResult{{Status: proxyclient.PushFailed, Offset: 5}}, true, -1, -1},
	} {
		base, code, text := verdict(test.own, test.sequenced)
		if base != test.base || code != test.code || (text == "") != (code == 0) {
			t.Errorf("%s: %d, code %d %q; want %d, code %d", test.what, base, code, text, test.base, test.code)
		}
	}
}

// What a client sends again after a code must be what followers may wait for.
func TestRetriable(t *testing.T) {
	for _, code := range rowCodes(0) {
		err, ok := kerr.ErrorForCode(code).(*kerr.Error)
		if !ok {
			t.Fatalf("%d is no code", code)
		}
		if got := retriable(code); got != err.Retriable {
			t.Errorf("%s: retriable %v, clients say %v", err.Message, got, err.Retriable)
		}
	}
}

func rowCodes(key int16) []int16 { return New(Config{}).row(key).Codes }
