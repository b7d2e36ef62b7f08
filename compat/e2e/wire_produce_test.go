package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// Case D1: ten thousand produces with acks=0 have no answer at all; Metadata
// behind them has one, and then everything is stored.
func TestWireAcksZero(t *testing.T) {
	const n = 10_000
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("zero"))
	one := rig.Frame(wireProduce(0, "zero", 0, wireBatch{values: []string{"v"}}.bytes()), 1, "rig")
	w.SendRaw(bytes.Repeat(one, n))
	req := wireMetadata("zero")
	w.Receive(req, w.Send(req)) // the first frame that comes
	if end := wireEnd(t, w, "zero", 0); end != n {
		t.Errorf("%d records are stored, want %d", end, n)
	}
}

// Case D1: a produce with acks=0 that fails closes the connection; those before
// it are stored.
func TestWireAcksZeroFailureCloses(t *testing.T) {
	r := rig.Start(t)
	check := r.Login(t, rig.Acme)
	check.Ask(wireMetadata("good"))
	good := wireBatch{values: []string{"v"}}.bytes()
	for i, bad := range []*kmsg.ProduceRequest{
		wireProduce(0, "bad name", 0, good), wireProduce(0, "__hidden", 0, good),
		wireProduce(0, "good", 9999, good), wireProduce(0, "good", 0, good[:40]),
	} {
		w := r.Login(t, rig.Acme)
		sent := rig.Frame(wireProduce(0, "good", 0, good), 1, "rig")
		sent = append(sent, rig.Frame(bad, 2, "rig")...)
		w.SendRaw(append(sent, rig.Frame(wireMetadata("good"), 3, "rig")...))
		w.WantClosed()
		wireCounted(t, r, wire.AcksZeroFailed, int64(i+1))
	}
	if end := wireEnd(t, check, "good", 0); end != 4 {
		t.Errorf("%d records are stored, want 4", end)
	}
}

// Case D2 to D9: the code of every kind of bad produce, at every version; the
// connection lives and nothing is written.
func TestWireProduceCodes(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("codes"))
	good := wireBatch{values: []string{"v"}}.bytes()
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	transactional := wireBatch{attributes: 0x10, producer: 7, values: []string{"v"}}.bytes()
	row := wireRow(t, 0)
	for _, test := range []struct {
		name string
		req  *kmsg.ProduceRequest
		code int16
	}{
		{"acks 5", wireProduce(5, "codes", 0, good), 21},
		{"acks -2", wireProduce(-2, "codes", 0, good), 21},
		{"null records", wireProduce(-1, "codes", 0, nil), 0},
		{"empty records", wireProduce(1, "codes", 0, []byte{}), 0},
		{"partition at the width", wireProduce(-1, "codes", 4, good), 3},
		{"partition -1", wireProduce(-1, "codes", -1, good), 3},
		{"partition max", wireProduce(-1, "codes", math.MaxInt32, good), 3},
		{"illegal topic", wireProduce(-1, "no blanks", 0, good), 17},
		{"empty topic", wireProduce(-1, "", 0, good), 17},
		{"topic ..", wireProduce(-1, "..", 0, good), 17},
		{"long topic", wireProduce(-1, strings.Repeat("t", 250), 0, good), 17},
		{"hidden topic", wireProduce(-1, "__x", 0, good), 3},
		{"CRC", wireProduce(-1, "codes", 0, change(20, good[20]^1)), 2},
		{"a record's byte", wireProduce(-1, "codes", 0, change(len(good)-2, 'w')), 2},
		{"cut", wireProduce(-1, "codes", 0, good[:len(good)-1]), 2},
		{"magic 3", wireProduce(-1, "codes", 0, change(16, 3)), 43},
		{"a few bytes", wireProduce(-1, "codes", 0, []byte("hello")), 43},
		{"control batch", wireProduce(-1, "codes", 0, wireBatch{attributes: 0x20, values: []string{"v"}}.bytes()), 87},
		{"transactional batch, no id", wireProduce(-1, "codes", 0, transactional), 53},
		{"base offset 1", wireProduce(-1, "codes", 0, change(7, 1)), 87},
		{"batch without records", wireProduce(-1, "codes", 0, wireBatch{}.bytes()), 87},
	} {
		for _, version := range []int16{row.Min, 7, 12, row.Max} {
			test.req.Version = version
			want := test.code
			if version >= 13 && test.req.Topics[0].Topic != "codes" {
				want = 100 // it has no id to ask by
			}
			wireIdentify(w, test.req)
			resp := w.Ask(test.req).(*kmsg.ProduceResponse)
			p := resp.Topics[0].Partitions[0]
			if p.ErrorCode != want || p.BaseOffset != -1 || p.Partition != test.req.Topics[0].Partitions[0].Partition {
				t.Errorf("%s, v%d: %+v; want code %d, base offset -1", test.name, test.req.Version, p, want)
			}
			if p.ErrorCode != 0 && test.req.Version >= 8 && (p.ErrorMessage == nil || *p.ErrorMessage == "") {
				t.Errorf("%s, v%d: no message", test.name, test.req.Version)
			}
		}
	}
	if end := wireEnd(t, w, "codes", 0); end != 0 {
		t.Errorf("%d records were written", end)
	}
}

// zstd below version 7 is 76 (KIP-110): a client of that age could not read what
// it wrote.
func TestWireProduceZstd(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("zstd"))
	raw := wireBatch{attributes: int16(batch.Zstd), values: []string{"v"}}.bytes()
	packed, err := batch.Compress(bytes.Clone(raw[:61]), batch.Zstd, raw[61:])
	if err != nil {
		t.Fatal(err)
	}
	wireSeal(packed)
	row, stored := wireRow(t, 0), int64(0)
	for version := row.Min; version <= row.Max; version++ {
		req := wireProduce(-1, "zstd", 0, packed)
		req.Version = version
		wireIdentify(w, req)
		want := int16(76)
		if version >= 7 {
			want = 0
			stored++
		}
		if p := w.Ask(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != want {
			t.Errorf("v%d: code %d, want %d", version, p.ErrorCode, want)
		}
	}
	if end := wireEnd(t, w, "zstd", 0); end != stored {
		t.Errorf("%d records are stored, want %d", end, stored)
	}
	// Who cannot read zstd (Fetch below 10) is not given any (B1).
	for version := wireRow(t, 1).Min; version < 10; version++ {
		req := wireFetch("zstd", 0, 0)
		req.Version = version
		records := w.Ask(req).(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
		if values := wireValues(t, records); int64(len(values)) != stored || values[0] != "0:v" {
			t.Errorf("v%d reads %q", version, values)
		}
		if codec := batch.Codec(records[22] & 7); codec == batch.Zstd {
			t.Errorf("v%d is given zstd", version)
		}
	}
}

// A request that is refused whole makes no topic.
func TestWireProduceRefusedMakesNothing(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	good := wireBatch{values: []string{"v"}}.bytes()
	transactional := wireProduce(-1, "by-transaction", 0, good)
	transactional.TransactionID = kmsg.StringPtr("txn")
	for _, test := range []struct {
		req  *kmsg.ProduceRequest
		code int16
	}{{wireProduce(2, "by-acks", 0, good), 21}, {transactional, 48}} {
		name := test.req.Topics[0].Topic
		if p := w.Ask(test.req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != test.code {
			t.Errorf("%s: code %d, want %d", name, p.ErrorCode, test.code)
		}
		look := wireMetadata(name)
		look.AllowAutoTopicCreation = false
		if code := w.Ask(look).(*kmsg.MetadataResponse).Topics[0].ErrorCode; code != 3 {
			t.Errorf("%s: metadata has code %d, want 3", name, code)
		}
	}
}

// Case D10: one byte over the cell's payload limit is 10 for that partition
// alone; its neighbour is stored, and the connection lives.
func TestWireProduceTooLarge(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("large"))
	value := strings.Repeat("x", 3000)
	payload := len(`{"k":null,"v":""}`) + base64.StdEncoding.EncodedLen(len(value))
	for _, test := range []struct {
		limit int
		code  int16
	}{{payload, 0}, {payload - 1, 10}} {
		limit := control.Overrides{"max_payload_bytes": json.RawMessage(fmt.Sprint(test.limit))}
		if err := r.Cell.Control().SetOverrides("acme", limit); err != nil {
			t.Fatal(err)
		}
		req := wireProduce(-1, "large", 0, wireBatch{timestamp: -1, values: []string{value}}.bytes())
		small := kmsg.NewProduceRequestTopicPartition()
		small.Partition, small.Records = 1, wireBatch{values: []string{"v"}}.bytes()
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, small)
		parts := w.Ask(req).(*kmsg.ProduceResponse).Topics[0].Partitions
		if parts[0].ErrorCode != test.code || parts[1].ErrorCode != 0 {
			t.Errorf("limit %d: codes %d and %d, want %d and 0", test.limit, parts[0].ErrorCode, parts[1].ErrorCode, test.code)
		}
	}
	if a, b := wireEnd(t, w, "large", 0), wireEnd(t, w, "large", 1); a != 1 || b != 2 {
		t.Errorf("%d and %d records are stored, want 1 and 2", a, b)
	}
}

// Case D11: a frame over the frame cap closes, for a stated reason.
func TestWireProduceFrameCap(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Limits.Frame = 1 << 20 }
	})
	w := r.Login(t, rig.Acme)
	frame := rig.Frame(wireProduce(-1, "cap", 0, wireBatch{values: []string{strings.Repeat("x", 2<<20)}}.bytes()), 1, "rig")
	_, _ = w.Write(frame) // may meet the close
	w.WantClosed()
	wireCounted(t, r, wire.FrameOversize, 1)
}

// Case D12: a record's time is the producer's, whatever it is.
func TestWireProduceTimestamps(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("times"))
	for i, ts := range []int64{0, -1, 1, 1 << 42, math.MaxInt64, 946_684_800_000} {
		base := wireMustStore(t, w, "times", 0, wireBatch{timestamp: ts, values: []string{"v"}})
		if base != int64(i) {
			t.Errorf("timestamp %d: base offset %d, want %d", ts, base, i)
		}
		got := wireBatches(t, wireRead(w, "times", 0, base).RecordBatches)
		if len(got) != 1 || got[0].FirstTimestamp != ts && ts != -1 {
			t.Errorf("timestamp %d is read back as %d", ts, got[0].FirstTimestamp)
		}
	}
}

// wireBatches reads the batches of a fetch answer.
func wireBatches(tb testing.TB, b []byte) []kmsg.RecordBatch {
	tb.Helper()
	var out []kmsg.RecordBatch
	for len(b) > 0 {
		var raw kmsg.RecordBatch
		if err := raw.ReadFrom(b); err != nil {
			tb.Fatal(err)
		}
		out = append(out, raw)
		b = b[12+raw.Length:]
	}
	return out
}
