package load

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestPayloadIsTheSameInEveryRun(t *testing.T) {
	sum := sha256.New()
	for _, v := range newPool(1000) {
		sum.Write(v)
	}
	const want = "9f7363c9c7c971e3"
	if got := fmt.Sprintf("%x", sum.Sum(nil))[:16]; got != want {
		t.Errorf("the values of 1,000 bytes are %s, not %s: figures of earlier runs are not comparable any more", got, want)
	}
}

func TestPayloadCompressesAsLogsDo(t *testing.T) {
	for _, size := range []int{100, 1000, 100_000} {
		m := newMaker(newPool(size), 0)
		var out bytes.Buffer
		w, err := flate.NewWriter(&out, flate.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		raw := 0
		for raw < 1<<20 {
			v := m.record("t").Value
			if len(v) != size {
				t.Fatalf("a value of %d bytes, not %d", len(v), size)
			}
			raw += len(v)
			if _, err := w.Write(v); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if ratio := float64(raw) / float64(out.Len()); ratio < 2.5 || ratio > 8 {
			t.Errorf("values of %d bytes: %d become %d, %.1f:1", size, raw, out.Len(), ratio)
		}
	}
}

// records are what a client has written to one partition.
func records(p pool, n int) ([]*kgo.Record, Sum) {
	m := newMaker(p, 3)
	var all []*kgo.Record
	for range n {
		all = append(all, m.record("t"))
	}
	return all, m.sum
}

func TestReaderNoticesWhatIsWrong(t *testing.T) {
	values := newPool(100)
	cases := map[string]struct {
		spoil func([]*kgo.Record) []*kgo.Record
		same  bool // nothing is wrong with each record: the sum must tell
	}{
		"lost":      {func(r []*kgo.Record) []*kgo.Record { return slices.Delete(r, 4, 5) }, true},
		"the last":  {func(r []*kgo.Record) []*kgo.Record { return r[:len(r)-1] }, true},
		"changed":   {func(r []*kgo.Record) []*kgo.Record { r[4].Value[50] ^= 1; return r }, true},
		"cut":       {func(r []*kgo.Record) []*kgo.Record { r[4].Value = r[4].Value[:99]; return r }, true},
		"twice":     {func(r []*kgo.Record) []*kgo.Record { return slices.Insert(r, 5, r[4]) }, false},
		"order":     {func(r []*kgo.Record) []*kgo.Record { r[4], r[5] = r[5], r[4]; return r }, false},
		"no number": {func(r []*kgo.Record) []*kgo.Record { r[4].Value = r[4].Value[:8]; return r }, false},
		"another's": {func(r []*kgo.Record) []*kgo.Record { r[4].Value[0] = 'x'; return r }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all, sum := records(values, 10)
			r := newReader()
			all = c.spoil(all)
			err := r.partition("t", 0, all[:5]) // in two polls
			if err == nil {
				err = r.partition("t", 0, all[5:])
			}
			if (err == nil) != c.same {
				t.Fatalf("reading says %v", err)
			}
			if err == nil && r.sum == sum {
				t.Error("the sums are equal")
			}
		})
	}
	all, sum := records(values, 10)
	r := newReader()
	if err := r.partition("t", 0, all); err != nil || r.sum != sum {
		t.Errorf("unspoiled: %v, written %+v, read %+v", err, sum, r.sum)
	}
}

func TestHistogramIsCloseToTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h histogram
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(r.ExpFloat64() * float64(3*time.Millisecond))
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	got := h.latency()
	for _, c := range []struct {
		name string
		got  float64
		part float64
	}{{"p50", got.P50, .5}, {"p99", got.P99, .99}, {"p99.9", got.P999, .999}} {
		want := float64(all[int(float64(len(all))*c.part)]) / 1e6
		if c.got < want || c.got > want*1.02 {
			t.Errorf("%s is %.4f ms, in truth %.4f", c.name, c.got, want)
		}
	}
	if want := float64(all[len(all)-1]) / 1e6; got.Max != want {
		t.Errorf("max is %v, in truth %v", got.Max, want)
	}
}

func TestHistogramTakesEveryTime(t *testing.T) {
	var h histogram
	for _, d := range []time.Duration{-1, 0, 1, 127, 128, 1<<62 + 1, 1<<63 - 1} {
		h.add(d)
		if b := bucket(uint64(max(d, 0))); highest(b) < uint64(max(d, 0)) {
			t.Errorf("%d is in a bucket up to %d", d, highest(b))
		}
	}
}
