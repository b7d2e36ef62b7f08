package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/config"
)

// zipped is a batch of one record of n zero bytes that a codec has made nearly
// nothing of.
func zipped(t *testing.T, c batch.Codec, n int) []byte {
	t.Helper()
	return compressed(t, c, strings.Repeat("\x00", n))
}

// compressed is a batch of any values in any codec.
func compressed(t *testing.T, c batch.Codec, values ...string) []byte {
	t.Helper()
	const records = 61
	plain := recordBatch(noProducer(), values...)
	small, err := batch.Compress(nil, c, plain[records:])
	if err != nil {
		t.Fatal(err)
	}
	b := append(plain[:records:records], small...)
	b[22] = byte(c)
	return wireSeal(b)
}

// storedCode sends one batch and returns its answer's code.
func storedCode(w *rig.Wire, topic string, records []byte) int16 {
	return w.Ask(wireProduce(-1, topic, 0, records)).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
}

// What a tenant's batches become has a ceiling of the process: what fits below
// it is stored, what never can is too large, and the connection goes on.
func TestRoomForDecompressed(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Limits.InflatedBytes = 4 << 20 } // a tenant may have 3
	})
	makeTopic(t, r, rig.Acme, "t")
	w := r.Login(t, rig.Acme)
	for c := batch.None; c <= batch.Zstd; c++ {
		// 700 KB are 0.93 MB in base64, which lie in 1 MiB, and themselves; 2.4 MB are
		// 3.2 MB in base64 alone.
		if code := storedCode(w, "t", zipped(t, c, 700_000)); code != 0 {
			t.Errorf("%s, what fits: code %d", c, code)
		}
		if code := storedCode(w, "t", zipped(t, c, 2_400_000)); code != 10 {
			t.Errorf("%s, what never fits: code %d, want 10", c, code)
		}
		if code := storedCode(w, "t", zipped(t, c, 100)); code != 0 {
			t.Errorf("%s, afterwards: code %d", c, code)
		}
	}
}

// While one tenant's records fill its part, it waits in line and is then told to
// come again (7); another tenant's go through.
func TestRoomIsKeptForOthers(t *testing.T) {
	relay := &wireRelay{}
	r := rig.Start(t, func(o *rig.Options) {
		o.CellAt = relay.at(t)
		o.Config = func(c *config.Config) {
			c.Limits.InflatedBytes, c.Limits.RoomWait = 4<<20, 50*time.Millisecond
		}
	})
	makeTopic(t, r, rig.Acme, "t")
	makeTopic(t, r, rig.Globex, "t")
	first, second, other := r.Login(t, rig.Acme), r.Login(t, rig.Acme2), r.Login(t, rig.Globex)
	hold := relay.holding("/api/v1/push")
	large := wireProduce(-1, "t", 0, zipped(t, batch.None, 700_000))
	id := first.Send(large)
	<-hold.reached
	if code := storedCode(second, "t", zipped(t, batch.None, 700_000)); code != 7 {
		t.Errorf("the tenant's other batch: code %d, want 7", code)
	}
	small := wireProduce(-1, "t", 0, zipped(t, batch.Gzip, 100))
	otherID := other.Send(small)
	<-hold.reached // it went on to the cell
	relay.hold.Store(nil)
	close(hold.release)
	if p := first.Receive(large, id).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
		t.Errorf("the first batch: code %d", p.ErrorCode)
	}
	if p := other.Receive(small, otherID).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
		t.Errorf("the other tenant's batch: code %d", p.ErrorCode)
	}
	if code := storedCode(second, "t", zipped(t, batch.None, 700_000)); code != 0 {
		t.Errorf("the tenant's other batch, later: code %d", code)
	}
}

// Metadata of a wide tenant on many connections at once: the answers wait for
// each other's memory, and each is whole.
func TestRoomForMetadata(t *testing.T) {
	const width, conns = 10_000, 8
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.DefaultPartitions, c.Limits.AnswerBytes, c.Limits.RoomWait = width, 4<<20, rig.Patience
		}
	})
	makeTopic(t, r, rig.Acme, "wide")
	all := wireMetadata()
	all.Topics = nil
	var ws []*rig.Wire
	var ids []int32
	for range conns {
		w := r.Login(t, rig.Acme)
		ws, ids = append(ws, w), append(ids, w.Send(all))
	}
	for i, w := range ws {
		resp := w.Receive(all, ids[i]).(*kmsg.MetadataResponse)
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != width {
			t.Errorf("connection %d: %d topics", i, len(resp.Topics))
		}
	}
}

// An answer for which there is no memory is empty and asks the client to come
// back later; one that fits is given.
func TestRoomForAnswers(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Limits.AnswerBytes = 1 << 20 } // 768 KiB of them for a tenant: a piece of 512
	})
	w := r.Login(t, rig.Acme)
	wireMustStore(t, w, "t", 0, wireBatch{values: []string{strings.Repeat("x", 500_000)}})
	wireMustStore(t, w, "t", 0, wireBatch{values: []string{strings.Repeat("x", 600_000)}})
	for offset, fits := range []bool{true, false, true} {
		resp := w.Ask(wireFetch("t", 0, int64(offset%2))).(*kmsg.FetchResponse)
		p := resp.Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.HighWatermark != 2 || (len(p.RecordBatches) > 0) != fits || (resp.ThrottleMillis == 0) != fits {
			t.Errorf("offset %d: code %d, high watermark %d, %d bytes, throttle %d ms",
				offset%2, p.ErrorCode, p.HighWatermark, len(p.RecordBatches), resp.ThrottleMillis)
		}
	}
}
