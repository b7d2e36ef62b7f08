package proxyclient

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/slab"
)

// encodedBody is all that a body holds.
func encodedBody(b *PushBody) []byte { return b.Cut(Mark{}, b.Mark()).Encoded }

// sent is what the transport would be given for a span.
func sent(t *testing.T, b *PushBody, from, to Mark) []byte {
	t.Helper()
	s := b.source(from, to)
	r, _ := s.open()
	out, err := io.ReadAll(r)
	if err != nil || len(out) != s.size {
		t.Fatalf("%d bytes of %d, %v", len(out), s.size, err)
	}
	return out
}

// Whatever is added, truncated and dropped, every span that is still there reads
// as if its items had been written one behind the other.
func TestABodyInPiecesIsOne(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	for range 30 {
		b := NewPushBody()
		marks, want := []Mark{b.Mark()}, [][]byte(nil) // marks[i] is before want[i]
		dropped := 0
		for range 60 {
			switch n := rng.IntN(12); {
			case n == 0:
				at := dropped + rng.IntN(len(marks)-dropped)
				b.Truncate(marks[at])
				marks, want = marks[:at+1], want[:at]
			case n == 1:
				dropped += rng.IntN(len(marks) - dropped)
				b.Drop(marks[dropped])
			default:
				r := someRecord(rng)
				one := NewPushBody()
				if n < 7 {
					b.Add("t", int32(n), r)
					one.Add("t", int32(n), r)
				} else {
					key := ProducerKey{ID: int64(n), Epoch: 3, Partition: int32(n), Sequence: rng.Int32()}
					b.AddKeyed("t", int32(n), r, key)
					one.AddKeyed("t", int32(n), r, key)
				}
				want = append(want, encodedBody(one))
				one.Release()
				marks = append(marks, b.Mark())
			}
		}
		checkSpans(t, b, marks, want, dropped)
		b.Release()
	}
}

func someRecord(rng *rand.Rand) *batch.Record {
	r := &batch.Record{Timestamp: rng.Int64N(1<<40) - 1}
	size := 1 << rng.IntN(17)
	if rng.IntN(3) > 0 {
		size = rng.IntN(300)
	}
	r.Value = bytes.Repeat([]byte{byte(size)}, size)
	if rng.IntN(4) == 0 { // what takes six times its length
		r.Headers = []batch.Header{{Key: bytes.Repeat([]byte{1}, rng.IntN(1000)), Value: r.Value[:size/2]}}
	}
	return r
}

func checkSpans(t *testing.T, b *PushBody, marks []Mark, want [][]byte, dropped int) {
	t.Helper()
	held := 0
	for _, c := range b.chunks {
		held += cap(*c)
	}
	if b.Held() != held || b.Items() != len(want) || b.Mark() != marks[len(marks)-1] && len(want) > 0 && b.Mark().bytes != marks[len(marks)-1].bytes {
		t.Fatalf("held %d of %d, %d items of %d", b.Held(), held, b.Items(), len(want))
	}
	for from := dropped; from < len(want); from += 3 {
		for to := from + 1; to <= len(want); to += 11 {
			text := bytes.Join(want[from:to], nil)
			if got := b.Cut(marks[from], marks[to]); !bytes.Equal(got.Encoded, text) || got.Count != to-from {
				t.Fatalf("items %d to %d: %d bytes, want %d", from, to, len(got.Encoded), len(text))
			}
			if got := sent(t, b, marks[from], marks[to]); string(got) != pushHead+string(text[1:])+pushTail || !json.Valid(got) {
				t.Fatalf("items %d to %d as a request: %d bytes", from, to, len(got))
			}
		}
	}
}

// Items are added behind a span that is being sent: its bytes stay what they were.
func TestABodyGrowsBehindAPush(t *testing.T) {
	t.Parallel()
	b := NewPushBody()
	defer b.Release()
	for range 2000 {
		b.Add("q", 0, record("k", strings.Repeat("x", 700)))
	}
	m := b.Mark()
	want := sent(t, b, Mark{}, m)
	src := b.source(Mark{}, m)
	r, _ := src.open()
	got := make([]byte, 1000)
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	grown, read := make(chan struct{}), make(chan struct{})
	go func() { // the race detector watches
		defer close(read)
		piece := make([]byte, 1000)
		_, _ = io.ReadFull(r, piece)
		got = append(got, piece...)
		<-grown
		rest, _ := io.ReadAll(r)
		got = append(got, rest...)
	}()
	for i := range 2000 {
		b.Add("q", 1, record(strconv.Itoa(i), strings.Repeat("y", 1000)))
	}
	b.Truncate(m)
	for range 2000 {
		b.Add("q", 2, record("k", strings.Repeat("z", 700)))
	}
	close(grown)
	if <-read; !bytes.Equal(got, want) {
		t.Error("what was sent is not what was there")
	}
}

// A single record takes little memory, and a large body not much more than it holds.
func TestABodyTakesWhatItNeeds(t *testing.T) {
	t.Parallel()
	b := NewPushBody()
	defer b.Release()
	b.Add("orders", 0, record("k", "v"))
	if b.Held() != slab.Least {
		t.Errorf("one record takes %d bytes", b.Held())
	}
	for range 5000 {
		b.Add("orders", 0, record("k", strings.Repeat("v", 1000)))
	}
	if b.Held() > b.Bytes()*11/10 {
		t.Errorf("%d bytes take %d", b.Bytes(), b.Held())
	}
}
