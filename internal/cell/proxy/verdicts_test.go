package proxy

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// TestVerdictsAreRenderedOneByOne holds answers, of which each verdict is made
// out of the one before, against verdicts that know of no other.
func TestVerdictsAreRenderedOneByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	queues := []string{"orders", "orders", "o\"\\\n\x01é", "p"}
	keys := []string{"", "qe:1000:0:0:41", "a longer key than eight bytes \"", "\\", "\x1f", "é, and more behind it", "\x7f", "12345678\"", "1234567\x00"}
	var id [16]byte
	copy(id[:], "\x01\x90\xab\xcd\xef\x01\x72\x34\xb5\x67\x89")
	count := uint64(1<<16 - 5)
	var v verdicts
	var got, want []byte
	for i := range 2000 {
		if rng.IntN(50) == 0 {
			count += rng.Uint64N(1 << 40)
			id[rng.IntN(8)]++
		}
		count++
		binary.BigEndian.PutUint64(id[8:], count)
		item := broker.PushItem{Queue: queues[rng.IntN(len(queues))], TransactionID: []byte(keys[rng.IntN(len(keys))])}
		r := broker.PushResult{Status: broker.PushStatus(rng.IntN(3)), Offset: rng.Int64N(1<<40) - 1<<38, MessageID: id}
		got = v.append(got[:0], int64(i), &item, &r)
		if want = naiveVerdict(want[:0], i, item, r); !bytes.Equal(got, want) {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

// naiveVerdict is cell-http §3.4, member by member.
func naiveVerdict(b []byte, index int, item broker.PushItem, r broker.PushResult) []byte {
	h := hex.EncodeToString(r.MessageID[:])
	id := h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	w := jx.Writer{Buf: b}
	w.RawStr(`{"index":` + strconv.Itoa(index) + `,"message_id":"` + id + `","transaction_id":`)
	if len(item.TransactionID) > 0 {
		w.Str(string(item.TransactionID))
	} else {
		w.Str(id)
	}
	w.RawStr(`,"queueName":`)
	w.Str(item.Queue)
	w.RawStr(`,"status":"` + map[broker.PushStatus]string{broker.Queued: "queued", broker.Duplicate: "duplicate", broker.Failed: "failed"}[r.Status] + `"`)
	if r.Offset >= 0 {
		w.RawStr(`,"offset":` + strconv.FormatInt(r.Offset, 10))
	}
	w.RawStr(`}`)
	return w.Buf
}
