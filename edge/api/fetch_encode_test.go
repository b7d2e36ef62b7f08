package api

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/queen-mq/queen-edge/edge/wire"
)

// whole is an answer as it is written.
func whole(t interface{ Fatal(...any) }, out []byte, lent []wire.Lent) []byte {
	var b bytes.Buffer
	var w wire.Writers
	if err := w.Write(&b, out, lent); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// anyFetch draws an answer with all that fetch may set, at a version.
func anyFetch(t *rapid.T, version int16) *kmsg.FetchResponse {
	code := rapid.Int16()
	offset := rapid.OneOf(rapid.Just(int64(-1)), rapid.Int64())
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = version
	resp.ThrottleMillis, resp.SessionID = rapid.Int32().Draw(t, "throttle"), rapid.Int32().Draw(t, "session")
	resp.ErrorCode = code.Draw(t, "code")
	for range rapid.IntRange(0, 3).Draw(t, "topics") {
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic = strings.Repeat(rapid.SampledFrom([]string{"t", "é"}).Draw(t, "name"), rapid.SampledFrom([]int{0, 1, 126, 127, 249}).Draw(t, "length"))
		copy(topic.TopicID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		for range rapid.IntRange(0, 5).Draw(t, "partitions") {
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition, p.ErrorCode = rapid.Int32().Draw(t, "partition"), code.Draw(t, "code")
			p.HighWatermark, p.LastStableOffset = offset.Draw(t, "high"), offset.Draw(t, "stable")
			p.LogStartOffset, p.PreferredReadReplica = offset.Draw(t, "start"), rapid.Int32().Draw(t, "replica")
			p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
			size := rapid.OneOf(rapid.IntRange(0, 300), rapid.SampledFrom([]int{16383, 16384, 16385, 70_000})).Draw(t, "batch")
			p.RecordBatches = bytes.Repeat([]byte{byte(size), byte(len(topic.Partitions))}, size)[:size]
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	if len(resp.Topics) > 0 && rapid.Bool().Draw(t, "many") {
		for len(resp.Topics) < 127 { // of which the length is a varint of two bytes
			resp.Topics = append(resp.Topics, kmsg.NewFetchResponseTopic())
		}
	}
	return resp
}

// What is written of a Fetch answer is, to the byte, what kmsg makes of it, at
// every version that is announced.
func TestFetchIsEncodedAsKmsgDoes(t *testing.T) {
	table := Table()
	row := table[slices.IndexFunc(table, func(r Row) bool { return r.Key == kmsg.Fetch.Int16() })]
	for version := row.Min; version <= row.Max; version++ {
		rapid.Check(t, func(t *rapid.T) {
			resp := anyFetch(t, version)
			c := &Conn{}
			out, err := c.appendResponse([]byte("before"), 77, resp)
			if err != nil {
				t.Fatal(err)
			}
			want := wire.BeginResponse([]byte("before"), 77, resp.IsFlexible())
			want = resp.AppendTo(want)
			wire.EndResponse(want, len("before"), 0)
			if got := whole(t, out, c.Lent()); !bytes.Equal(got, want) {
				t.Fatalf("v%d: %d bytes differ from kmsg's %d", version, len(got), len(want))
			}
			if len(out) > len("before")+40+len(resp.Topics)*(500+5*60) {
				t.Fatalf("%d bytes of its own: batches were copied", len(out))
			}
		})
	}
}

// A frame that is too large with what lies elsewhere is none, and nothing of it
// is lent.
func TestFetchTooLarge(t *testing.T) {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 12
	topic, p := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = make([]byte, wire.MaxFrame)
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	c := &Conn{}
	out, err := c.appendResponse([]byte("before"), 77, resp)
	if err == nil || string(out) != "before" || len(c.Lent()) != 0 {
		t.Errorf("%v, %d bytes, %d parts", err, len(out), len(c.Lent()))
	}
}
