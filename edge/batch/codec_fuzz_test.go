package batch

import (
	"testing"
)

// FuzzCodec gives each codec bytes of its own, without the header in front: a
// stream ends in a known error or in records, and never takes more than its
// budget.
func FuzzCodec(f *testing.F) {
	for c := Gzip; c <= Zstd; c++ {
		for _, raw := range [][]byte{nil, make([]byte, 100), write(f, make3())[headerSize:], make([]byte, 300_000)} {
			small, err := Compress(nil, c, raw)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(c), int32(3), small)
		}
	}
	f.Fuzz(func(t *testing.T, codec uint8, records int32, body []byte) {
		const most = 1 << 20
		b := Batch{Magic: magicV2, Attributes: int16(codec & codecMask), LastOffsetDelta: records - 1, NumRecords: records, body: body}
		budget := Budget{Bytes: most, Records: 10_000}
		bytes, n := 0, int32(0)
		err := NewDecoder().Each(&b, &budget, func(r *Record) error {
			bytes += len(r.Key) + len(r.Value)
			n++
			return nil
		})
		if err != nil && !known(err) {
			t.Fatal(err)
		}
		if err == nil && n != records || bytes > most || budget.Bytes < 0 || budget.Records < 0 {
			t.Errorf("%d of %d records, %d bytes, %+v left, %v", n, records, bytes, budget, err)
		}
	})
}
