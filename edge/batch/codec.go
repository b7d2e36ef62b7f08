package batch

import (
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is a compression of Kafka's, by its number in a batch's attributes.
type Codec uint8

// The codecs (zstd: KIP-110).
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// String is the name Kafka's configuration uses.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("unknown(%d)", uint8(c))
}

// Compress appends raw, compressed as a Kafka producer would, to dst: snappy in
// xerial frames, LZ4 as a frame of independent 64 KiB blocks (what every client
// can read). It makes its encoder anew each time.
func Compress(dst []byte, c Codec, raw []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, raw...), nil
	case Gzip:
		out := appender{dst}
		w := gzip.NewWriter(&out)
		return closeInto(&out, w, raw)
	case Snappy:
		return appendXerial(dst, raw), nil
	case LZ4:
		out := appender{dst}
		w := lz4.NewWriter(&out)
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb)); err != nil {
			return nil, err
		}
		return closeInto(&out, w, raw)
	case Zstd:
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		dst = enc.EncodeAll(raw, dst)
		return dst, enc.Close()
	}
	return nil, fmt.Errorf("%w: codec %s", ErrCorrupt, c)
}

func closeInto(out *appender, w io.WriteCloser, raw []byte) ([]byte, error) {
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.b, nil
}

// appender is a slice to write to.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}
