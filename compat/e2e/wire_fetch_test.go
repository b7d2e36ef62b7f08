package e2e

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// wireValues are the offsets and values of the records in a fetch answer.
func wireValues(tb testing.TB, b []byte) (out []string) {
	tb.Helper()
	for _, raw := range wireBatches(tb, b) {
		rest := raw.Records
		for range raw.NumRecords {
			size, n := binary.Varint(rest)
			rec := rest[n+1 : n+int(size)] // behind the attributes
			rest = rest[n+int(size):]
			_, n = binary.Varint(rec)
			rec = rec[n:]
			delta, n := binary.Varint(rec)
			rec = rec[n:]
			if _, n = binary.Varint(rec); n != 1 || rec[0] != 1 {
				tb.Fatal("a record has a key")
			}
			size, n = binary.Varint(rec[1:])
			out = append(out, fmt.Sprintf("%d:%s", raw.FirstOffset+delta, rec[1+n:1+n+int(size)]))
		}
	}
	return out
}

// Case E1 (KIP-74): the first batch comes though it is larger than max_bytes,
// and only that one extra.
func TestWireFetchFirstBatchComes(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("kip74"))
	large := strings.Repeat("x", 900<<10)
	for partition := int32(2); partition < 4; partition++ {
		for range 2 {
			wireMustStore(t, w, "kip74", partition, wireBatch{values: []string{large}})
		}
	}
	row := wireRow(t, 1)
	for version := row.Min; version <= row.Max; version++ {
		req := wireFetch("kip74", 0, 0)
		req.Version, req.MaxBytes = version, 1
		wireIdentify(w, req)
		req.Topics[0].Partitions = []kmsg.FetchRequestTopicPartition{
			wireFetchPart(0, 0), wireFetchPart(1, 0), wireFetchPart(2, 0), wireFetchPart(3, 0),
		}
		for i := range req.Topics[0].Partitions {
			req.Topics[0].Partitions[i].PartitionMaxBytes = 1
		}
		parts := w.Ask(req).(*kmsg.FetchResponse).Topics[0].Partitions
		for i, want := range []int{0, 0, 1, 0} {
			p := parts[i]
			if got := wireValues(t, p.RecordBatches); len(got) != want || p.ErrorCode != 0 || p.RecordBatches == nil {
				t.Errorf("v%d, partition %d: %d records, code %d; want %d", version, i, len(got), p.ErrorCode, want)
			}
			if end := int64(max(0, i/2*2)); p.HighWatermark != end || p.LastStableOffset != end {
				t.Errorf("v%d, partition %d: high watermark %d, last stable %d; want %d", version, i, p.HighWatermark, p.LastStableOffset, end)
			}
		}
	}
}

// Case E2: a fetch at every offset of two batches begins with the record of that
// offset; at the end it is empty, beyond it and below 0 it is 1.
func TestWireFetchEveryOffset(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("offsets"))
	wireMustStore(t, w, "offsets", 0, wireBatch{values: []string{"0", "1", "2"}})
	wireMustStore(t, w, "offsets", 0, wireBatch{values: []string{"3", "4"}})
	all := []string{"0:0", "1:1", "2:2", "3:3", "4:4"}
	row := wireRow(t, 1)
	for version := row.Min; version <= row.Max; version++ {
		for _, isolation := range []int8{0, 1} {
			for offset := int64(-3); offset <= 8; offset++ {
				req := wireFetch("offsets", 0, offset)
				req.Version, req.IsolationLevel = version, isolation
				wireIdentify(w, req)
				resp := w.Ask(req).(*kmsg.FetchResponse)
				p := resp.Topics[0].Partitions[0]
				if resp.SessionID != 0 || p.AbortedTransactions == nil || p.RecordBatches == nil {
					t.Errorf("v%d at %d: session %d, aborted %v, records %v", version, offset, resp.SessionID, p.AbortedTransactions, p.RecordBatches)
				}
				if offset < 0 || offset > 5 {
					if p.ErrorCode != 1 || p.HighWatermark != -1 || len(p.RecordBatches) != 0 {
						t.Errorf("v%d at %d: code %d, high watermark %d; want 1, -1", version, offset, p.ErrorCode, p.HighWatermark)
					}
					continue
				}
				got := wireValues(t, p.RecordBatches)
				if p.ErrorCode != 0 || p.HighWatermark != 5 || p.LastStableOffset != 5 || !slices.Equal(got, all[offset:]) {
					t.Errorf("v%d at %d: code %d, high watermark %d, records %v", version, offset, p.ErrorCode, p.HighWatermark, got)
				}
			}
		}
	}
	for _, offset := range []int64{math.MaxInt64, math.MinInt64} {
		if p := wireRead(w, "offsets", 0, offset); p.ErrorCode != 1 {
			t.Errorf("at %d: code %d, want 1", offset, p.ErrorCode)
		}
	}
}

// Case E3: times before, on, between and after the appends; the ends of a log;
// an empty log; other negative times are 35 for their partition.
func TestWireListOffsets(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("list"))
	first := wireAppend(t, w, 0)
	second := wireAppend(t, w, first+2) // so that a time lies between
	row := wireRow(t, 2)
	for version := row.Min; version <= row.Max; version++ {
		for _, test := range []struct {
			what         string
			partition    int32
			ask          int64
			code         int16
			offset, time int64
		}{
			{"latest", 0, -1, 0, 2, -1},
			{"earliest", 0, -2, 0, 0, -1},
			{"long before", 0, 0, 0, 0, first},
			{"just before", 0, first - 1, 0, 0, first},
			{"on the first", 0, first, 0, 0, first},
			{"between", 0, first + 1, 0, 1, second},
			{"on the second", 0, second, 0, 1, second},
			{"after", 0, second + 1, 0, -1, -1},
			{"far future", 0, math.MaxInt64, 0, -1, -1},
			{"empty log, time", 1, first, 0, -1, -1},
			{"empty log, latest", 1, -1, 0, 0, -1},
			{"empty log, earliest", 1, -2, 0, 0, -1},
			{"max timestamp", 0, -3, 0, 1, second},
			{"empty log, max timestamp", 1, -3, 0, -1, -1},
			{"earliest local", 0, -4, 0, 0, -1},
			{"latest tiered", 0, -5, 0, -1, -1},
			{"-6", 0, -6, 35, -1, -1},
			{"smallest", 0, math.MinInt64, 35, -1, -1},
			{"partition at the width", 4, -1, 3, -1, -1},
			{"partition -1", -1, -1, 3, -1, -1},
		} {
			req := wireListRequest("list", test.partition, test.ask)
			req.Version = version
			if first := map[int64]int16{-3: 7, -4: 8, -5: 9}[test.ask]; version < first {
				test.code, test.offset, test.time = 35, -1, -1
			}
			p := w.Ask(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
			if p.ErrorCode != test.code || p.Offset != test.offset || p.Timestamp != test.time || p.LeaderEpoch != -1 {
				t.Errorf("v%d, %s: %+v; want code %d, offset %d, time %d", version, test.what, p, test.code, test.offset, test.time)
			}
		}
	}
	for _, topic := range []string{"nothing", "__x", "no blanks", ""} {
		if p := wireList(w, topic, 0, -1); p.ErrorCode != 3 {
			t.Errorf("topic %q: code %d, want 3", topic, p.ErrorCode)
		}
	}
}

// wireAppend stores one record of topic list not before a time, and returns
// when the cell took it.
func wireAppend(t *testing.T, w *rig.Wire, notBefore int64) int64 {
	t.Helper()
	rig.Eventually(t, "the clock goes on", func() bool { return time.Now().UnixMilli() >= notBefore })
	base := wireMustStore(t, w, "list", 0, wireBatch{values: []string{"v"}})
	p := wireList(w, "list", 0, notBefore)
	if p.Offset != base {
		t.Fatalf("offset %d, want %d", p.Offset, base)
	}
	return p.Timestamp
}

// Case E4 (KIP-227): a request that goes on with an unknown session gets 70, at the top,
// and no data; that the client answers with a full fetch. One that wants a new
// session, or none, is a full fetch, whatever session it ends with that.
func TestWireFetchSessions(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("session"))
	row := wireRow(t, 1)
	for version := int16(7); version <= row.Max; version++ {
		for _, session := range [][2]int32{{1, 1}, {-1, 5}, {math.MaxInt32, math.MaxInt32}, {0, 1}, {0, -2}, {1, math.MinInt32}} {
			req := wireFetch("session", 0, 0)
			req.Version, req.SessionID, req.SessionEpoch = version, session[0], session[1]
			wireIdentify(w, req)
			resp := w.Ask(req).(*kmsg.FetchResponse)
			if resp.ErrorCode != 70 || len(resp.Topics) != 0 || resp.SessionID != 0 {
				t.Errorf("v%d, session %v: code %d, %d topics", version, session, resp.ErrorCode, len(resp.Topics))
			}
		}
		for _, session := range [][2]int32{{0, 0}, {0, -1}, {1, 0}, {math.MaxInt32, -1}} {
			req := wireFetch("session", 0, 0)
			req.Version, req.SessionID, req.SessionEpoch = version, session[0], session[1]
			wireIdentify(w, req)
			resp := w.Ask(req).(*kmsg.FetchResponse)
			if resp.ErrorCode != 0 || (resp.SessionID > 0) != (session[1] == 0) || len(resp.Topics) != 1 {
				t.Errorf("v%d, session %v: code %d, session %d", version, session, resp.ErrorCode, resp.SessionID)
			}
		}
	}
}

// Case E5: the codes of a fetch come from the set a consumer expects: an illegal
// name is 3, never 17; a cell that is gone is 6.
func TestWireFetchCodes(t *testing.T) {
	var relay wireRelay
	r := rig.Start(t, func(o *rig.Options) { o.CellAt = relay.at(t) })
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("codes"))
	wireMustStore(t, w, "codes", 0, wireBatch{values: []string{"v"}})
	for _, test := range []struct {
		topic     string
		partition int32
		offset    int64
		code      int16
	}{
		{"codes", 0, 0, 0},
		{"codes", 0, 1, 0},
		{"codes", 0, 2, 1},
		{"codes", 0, -1, 1},
		{"codes", 4, 0, 3},
		{"codes", -1, 0, 3},
		{"codes", math.MaxInt32, 0, 3},
		{"codes", math.MinInt32, 0, 3},
		{"nothing", 0, 0, 3},
		{"__x", 0, 0, 3},
		{"no blanks", 0, 0, 3},
		{"", 0, 0, 3},
		{"..", 0, 0, 3},
		{strings.Repeat("t", 250), 0, 0, 3},
	} {
		if p := wireRead(w, test.topic, test.partition, test.offset); p.ErrorCode != test.code {
			t.Errorf("%.20q/%d at %d: code %d, want %d", test.topic, test.partition, test.offset, p.ErrorCode, test.code)
		}
	}
	// A partition that can be read is read whatever the others are.
	req := wireFetch("codes", 0, 0)
	req.MinBytes, req.MaxWaitMillis = 1<<20, 60_000 // and nobody waits for an answer with an error
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, wireFetchPart(9, 0))
	parts := w.Ask(req).(*kmsg.FetchResponse).Topics[0].Partitions
	if len(wireValues(t, parts[0].RecordBatches)) != 1 || parts[1].ErrorCode != 3 {
		t.Errorf("codes %d and %d", parts[0].ErrorCode, parts[1].ErrorCode)
	}
	denied := r.Login(t, rig.Produce)
	if p := wireRead(denied, "codes", 0, 0); p.ErrorCode != 29 {
		t.Errorf("without the scope: code %d, want 29", p.ErrorCode)
	}
	relay.cut.Store(true)
	if p := wireRead(w, "codes", 0, 0); p.ErrorCode != 6 || p.HighWatermark != -1 || p.RecordBatches == nil {
		t.Errorf("the cell is gone: %+v; want code 6", p)
	}
	if p := wireList(w, "codes", 0, -1); p.ErrorCode != 6 || p.Offset != -1 {
		t.Errorf("the cell is gone: %+v; want code 6", p)
	}
	if p := wireList(w, "codes", 0, 5); p.ErrorCode != 6 || p.Offset != -1 {
		t.Errorf("the cell is gone, a time: %+v; want code 6", p)
	}
}
