package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// wireMessage is a message of magic 0 or 1 with a null key.
func wireMessage(magic, attributes byte, offset int64, value []byte) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(offset))
	b = append(b, make([]byte, 8)...) // length, CRC
	b = append(b, magic, attributes)
	if magic == 1 {
		b = binary.BigEndian.AppendUint64(b, 1_700_000_000_000)
	}
	b = append(b, 0xff, 0xff, 0xff, 0xff)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}

// wireWrapped is a compressed message around raw.
func wireWrapped(tb testing.TB, magic byte, codec batch.Codec, raw []byte) []byte {
	tb.Helper()
	value, err := batch.Compress(nil, codec, raw)
	if err != nil {
		tb.Fatal(err)
	}
	return wireMessage(magic, byte(codec), 0, value)
}

// wireAt produces to partition 0 of a topic at a version.
func wireAt(w *rig.Wire, version int16, topic string, records []byte) (*kmsg.ProduceResponse, kmsg.ProduceResponseTopicPartition) {
	req := wireProduce(-1, topic, 0, records)
	req.Version = version
	resp := w.Ask(req).(*kmsg.ProduceResponse)
	return resp, resp.Topics[0].Partitions[0]
}

// Message sets of kafka-python 2.0.2 and sarama, in both old formats and with
// each codec, are stored at each version that may carry them, and a client of
// today reads what their producers meant.
func TestWireLegacyProduce(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	files, err := filepath.Glob("../../edge/batch/testdata/legacy/*.bin")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	want := []batch.Record{
		{},
		{Key: []byte{}, Value: []byte{}},
		{Key: []byte("k"), Value: []byte("v"), Timestamp: 1_700_000_000_001},
		{Key: every, Value: []byte(strings.Repeat("compressible ", 300)), Timestamp: 1_700_000_000_002},
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		topic := strings.TrimSuffix(filepath.Base(file), ".bin")
		w.Ask(wireMetadata(topic))
		began := time.Now()
		for version := range int16(3) {
			_, p := wireAt(w, version, topic, raw)
			if p.ErrorCode != 0 || p.BaseOffset != 4*int64(version) || p.LogAppendTime != -1 {
				t.Errorf("%s, v%d: %+v", topic, version, p)
			}
		}
		for i, rec := range readAll(t, r, rig.Consume, topic)[0] {
			one := want[i%4]
			if !bytes.Equal(rec.Key, one.Key) || !bytes.Equal(rec.Value, one.Value) ||
				(rec.Key == nil) != (one.Key == nil) || (rec.Value == nil) != (one.Value == nil) || len(rec.Headers) > 0 {
				t.Errorf("%s: offset %d is %.100q=%.100q", topic, i, rec.Key, rec.Value)
			}
			switch stamp := rec.Timestamp.UnixMilli(); {
			case strings.Contains(topic, "-v0-") && stamp < began.Add(-rig.Patience).UnixMilli():
				t.Errorf("%s: offset %d has time %d, want that of its append", topic, i, stamp)
			case strings.Contains(topic, "-v1-") && one.Timestamp != 0 && stamp != one.Timestamp:
				t.Errorf("%s: offset %d has time %d, want %d", topic, i, stamp, one.Timestamp)
			}
		}
		if end := wireEnd(t, w, topic, 0); end != 12 {
			t.Errorf("%s: %d records are stored, want 12", topic, end)
		}
	}
	for c := batch.None; c <= batch.LZ4; c++ {
		if n := r.Gateway.Stats().Batches(c); n == 0 {
			t.Errorf("no batch arrived with %s", c)
		}
	}
}

// What may not stand in a request of an old version, or in one of a new.
func TestWireLegacyCodes(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("legacy"))
	v2 := wireBatch{values: []string{"v"}}.bytes()
	v0, v1 := wireMessage(0, 0, 0, []byte("v")), wireMessage(1, 0, 0, []byte("v"))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	bad := bytes.Clone(v1)
	bad[len(bad)-1] ^= 1
	stored := int64(0)
	for _, test := range []struct {
		name     string
		records  []byte
		old, new int16 // below version 3, and from there on
	}{
		{"magic 0", v0, 0, 87},
		{"magic 1", v1, 0, 87},
		{"magic 2", v2, 0, 0},
		{"gzip in gzip", wireWrapped(t, 0, batch.Gzip, wireWrapped(t, 0, batch.Gzip, v0)), 87, 87},
		{"several compressed", join(wireWrapped(t, 1, batch.LZ4, v1), wireWrapped(t, 1, batch.Snappy, v1)), 0, 87},
		{"zstd", wireWrapped(t, 1, batch.Zstd, v1), 76, 87},
		{"codec 5", wireMessage(1, 5, 0, v1), 2, 87},
		{"another magic inside", wireWrapped(t, 1, batch.Gzip, v0), 87, 87},
		{"nothing inside", wireWrapped(t, 1, batch.Gzip, nil), 87, 87},
		{"CRC", bad, 2, 87},
		{"CRC inside", wireWrapped(t, 1, batch.Gzip, bad), 2, 87},
		{"cut", v1[:len(v1)-1], 2, 87},
		{"cut second", join(v0, v0[:20]), 2, 87},
		{"magic 0, then 1", join(v0, v1), 87, 87},
		{"magic 1, then 2", join(v1, v2), 87, 87},
		{"magic 2, then 1", join(v2, v1), 87, 87},
		{"magic 3", wireMessage(3, 0, 0, nil), 43, 43},
		{"zeros", make([]byte, 60), 2, 2},
	} {
		for version := range int16(13) {
			want := test.old
			if version >= 3 {
				want = test.new
			}
			resp, p := wireAt(w, version, "legacy", test.records)
			if p.ErrorCode != want || resp.ThrottleMillis != 0 {
				t.Errorf("%s, v%d: %+v, want code %d", test.name, version, p, want)
			}
			if want != 0 {
				continue
			}
			if p.BaseOffset != stored {
				t.Errorf("%s, v%d: base offset %d, want %d", test.name, version, p.BaseOffset, stored)
			}
			stored = wireEnd(t, w, "legacy", 0)
		}
	}
	if stored != 3+3+13+3*2 {
		t.Errorf("%d records are stored", stored)
	}
}

// acks=0 is as old as Produce: no answer, and a failure closes.
func TestWireLegacyAcksZero(t *testing.T) {
	const n = 1000
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("zero"))
	req := wireProduce(0, "zero", 0, wireMessage(0, 0, 0, []byte("v")))
	req.Version = 0
	w.SendRaw(bytes.Repeat(rig.Frame(req, 1, "rig"), n))
	meta := wireMetadata("zero")
	w.Receive(meta, w.Send(meta)) // the first frame that comes
	if end := wireEnd(t, w, "zero", 0); end != n {
		t.Errorf("%d records are stored, want %d", end, n)
	}
	req.Topics[0].Partitions[0].Records[26] ^= 1
	w.SendRaw(rig.Frame(req, 2, "rig"))
	w.WantClosed()
	wireCounted(t, r, wire.AcksZeroFailed, 1)
}

// Requests of every version in one go: each answer has the shape of its own.
func TestWireLegacyPipelined(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("mixed"))
	reqs, ids := make([]*kmsg.ProduceRequest, 13), make([]int32, 13)
	for i := range reqs {
		records := wireMessage(byte(i%2), 0, 0, fmt.Append(nil, i))
		if i >= 3 {
			records = wireBatch{values: []string{fmt.Sprint(i)}}.bytes()
		}
		reqs[i] = wireProduce(-1, "mixed", 0, records)
		reqs[i].Version = int16(i)
		ids[i] = w.Send(reqs[i])
	}
	for i, req := range reqs {
		p := w.Receive(req, ids[i]).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != int64(i) {
			t.Errorf("v%d: %+v", i, p)
		}
	}
}
