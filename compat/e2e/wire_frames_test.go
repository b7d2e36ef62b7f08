package e2e

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// Case B1: client ids of every kind, under old and flexible headers, before
// login and after it.
func TestWireClientIDs(t *testing.T) {
	r := rig.Start(t)
	in, out := r.Login(t, rig.Acme), r.Dial(t)
	for name, id := range map[string][]byte{
		"null": nil, "empty": {}, "one byte": []byte("a"), "32 KB": []byte(strings.Repeat("x", math.MaxInt16)),
		"not UTF-8": {0xff, 0xfe, 0x00, 0x80}, "key": []byte("qk_live_0123456789"),
	} {
		for _, old := range []bool{true, false} {
			for _, key := range []int16{18, 3} {
				w, req := in, wireSample(key, 1)
				if !old {
					req.SetVersion(wireRow(t, key).Max)
				}
				if key == 18 && name != "32 KB" && old {
					w = out // a few of them: 8 frames is all a stranger has
				}
				var tags []byte
				if req.(interface{ IsFlexible() bool }).IsFlexible() {
					tags = []byte{0}
				}
				w.SendRaw(wireFrame(key, req.GetVersion(), 7, id, tags, req.AppendTo(nil)))
				if resp := w.Receive(req, 7); resp == nil {
					t.Fatalf("client id %s: no answer", name)
				}
			}
		}
	}
}

// Case B2: lengths of the client id that cannot be.
func TestWireClientIDLengths(t *testing.T) {
	r := rig.Start(t)
	n := int64(0)
	for _, length := range []int16{-2, math.MinInt16, 100, math.MaxInt16} {
		for _, version := range []int16{0, 3} {
			for _, dial := range []func() *rig.Wire{func() *rig.Wire { return r.Dial(t) }, func() *rig.Wire { return r.Login(t, rig.Acme) }} {
				w := dial()
				frame := wireFrame(18, version, 1, []byte("abc"), nil, []byte{0, 1, 1, 0})
				binary.BigEndian.PutUint16(frame[12:], uint16(length))
				w.SendRaw(frame)
				w.WantClosed()
				n++
			}
		}
	}
	wireCounted(t, r, wire.Malformed, n)
}

// Case B3: sizes that no request has. Nothing but 10 bytes of ApiVersions is
// one; the rest closes at once, before login and after it.
func TestWireFrameSizes(t *testing.T) {
	r := rig.Start(t)
	for _, login := range []bool{false, true} {
		dial := func() (*rig.Wire, int64) {
			if login {
				return r.Login(t, rig.Acme), wire.MaxFrame
			}
			return r.Dial(t), 64 << 10
		}
		for size := range 14 {
			w, _ := dial()
			frame := append(binary.BigEndian.AppendUint32(nil, uint32(size)), 0, 18, 0, 0, 0, 0, 0, 5, 0xff, 0xff, 0, 0, 0)[:4+size]
			w.SendRaw(frame)
			if size == 10 {
				w.Receive(kmsg.NewPtrApiVersionsRequest(), 5)
				continue
			}
			w.WantClosed()
		}
		_, limit := dial()
		for _, size := range []uint32{math.MaxUint32, 1 << 31, uint32(limit) + 1, math.MaxInt32} {
			before := r.Gateway.Closed(wire.FrameOversize)
			w, _ := dial()
			w.SendRaw(binary.BigEndian.AppendUint32(nil, size))
			w.WantClosed()
			wireCounted(t, r, wire.FrameOversize, before+1)
		}
	}
	if n := r.Gateway.Closed(wire.Internal); n != 0 {
		t.Errorf("%d panics", n)
	}
}

// Case B3: a size whose body never comes, or stops coming.
func TestWireBodyNeverComes(t *testing.T) {
	t.Parallel()
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.LoginTimeout, c.Limits.FrameStall = rig.Patience, 100*time.Millisecond
		}
	})
	for i, part := range [][]byte{
		{0}, {0, 0, 0}, {0, 0, 0, 200}, {0, 0, 0, 200, 0, 18}, {0, 0, 0, 200, 0, 18, 0, 0, 0, 0, 0, 1, 0},
	} {
		w := r.Login(t, rig.Acme)
		w.SendRaw(part)
		w.WantClosed()
		wireCounted(t, r, wire.ClientSlow, int64(i+1))
	}
	w := r.Dial(t)
	w.SendRaw([]byte{0, 0, 0, 200, 0, 18})
	w.WantClosed()
	wireCounted(t, r, wire.LoginTimeout, 1)
}

// Case B3: a frame that comes a byte at a time, each in time, holds its memory
// no longer than one that came slowly but steadily.
func TestWireDrippedFrame(t *testing.T) {
	t.Parallel()
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Limits.FrameStall, c.Limits.FrameRate = 2*time.Second, 1<<20 }
	})
	w := r.Login(t, rig.Acme)
	w.SendRaw(binary.BigEndian.AppendUint32(nil, 1<<20)) // a second's worth
	w.SendRaw([]byte{0, 3, 0, 9, 0, 0, 0, 1})
	gone := make(chan error, 1)
	go func() {
		_, err := w.Read(make([]byte, 1))
		gone <- err
	}()
	drip := time.NewTicker(50 * time.Millisecond)
	defer drip.Stop()
	for over := false; !over; {
		select {
		case err := <-gone:
			if ne, ok := err.(net.Error); err == nil || ok && ne.Timeout() {
				t.Errorf("%v, want the end", err)
			}
			over = true
		case <-drip.C:
			_, _ = w.Write([]byte{0})
		}
	}
	wireCounted(t, r, wire.ClientSlow, 1)

	w = rig.Start(t).Login(t, rig.Acme) // a patient gateway takes what comes a byte at a time
	for _, b := range rig.Frame(wireMetadata(), 1, "drip") {
		w.SendRaw([]byte{b})
	}
	w.Receive(wireMetadata(), 1)
}

// Case B3: a client that leaves in the middle of a frame.
func TestWireClientLeavesInFrame(t *testing.T) {
	r := rig.Start(t)
	for i, part := range [][]byte{{0}, {0, 0, 0, 200}, {0, 0, 0, 200, 0, 3, 0, 9, 0}} {
		w := r.Login(t, rig.Acme)
		w.SendRaw(part)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		wireCounted(t, r, wire.ClientCut, int64(i+1))
	}
}

// wireTag gives every struct of a request unknown tags, and every list of
// structs an entry to carry some.
func wireTag(v reflect.Value) {
	for i := range v.NumField() {
		f, field := v.Field(i), v.Type().Field(i)
		switch {
		case field.Name == "UnknownTags":
			tags := f.Addr().Interface().(*kmsg.Tags)
			tags.Set(77, []byte{})
			tags.Set(1<<31, []byte("a tag of a time to come"))
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			if f.Len() == 0 {
				item := reflect.New(f.Type().Elem())
				item.MethodByName("Default").Call(nil)
				f.Set(reflect.Append(f, item.Elem()))
			}
			for j := range f.Len() {
				wireTag(f.Index(j))
			}
		case f.Kind() == reflect.Struct && field.Name != "Tags":
			wireTag(f)
		}
	}
}

// Case B4: unknown tags in the header and in every struct of every flexible
// request are ignored.
func TestWireUnknownTags(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	seen := 0
	for _, row := range api.Table() {
		for version := row.Min; version <= row.Max; version++ {
			req := wireSample(row.Key, version)
			if !req.IsFlexible() {
				continue
			}
			seen++
			wireTag(reflect.ValueOf(req).Elem())
			tags := []byte{2, 0x4d, 0, 0xff, 0xff, 0x03, 3, 'a', 'b', 'c'}
			w.SendRaw(wireFrame(row.Key, version, 9, []byte("rig"), tags, req.AppendTo(nil)))
			w.Receive(req, 9)
		}
	}
	if seen < 10 {
		t.Errorf("%d flexible versions, want all", seen)
	}
}

// Case B4: tags that are not whole, or too many, close the connection.
func TestWireBadTags(t *testing.T) {
	r := rig.Start(t)
	n := int64(0)
	many := []byte{33}
	for i := range 33 {
		many = append(many, byte(i), 0)
	}
	for name, tags := range map[string][]byte{
		"33 tags": many, "none after the count": {2}, "longer than the frame": {1, 5, 200, 1},
		"endless number": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		w := r.Login(t, rig.Acme)
		w.SendRaw(wireFrame(18, 3, 1, nil, tags, nil))
		w.WantClosed()
		n++
		wireCounted(t, r, wire.Malformed, n)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// Case B5: 256 requests at once, slow and fast ones mixed, are answered in
// their order.
func TestWirePipeline(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("pipe", "silent"))
	var sent []byte
	var reqs []kmsg.Request
	for i := range 256 {
		var req kmsg.Request
		switch {
		case i%64 == 0: // slow: nothing ever comes there
			f := wireFetch("silent", 0, 0)
			f.MinBytes, f.MaxWaitMillis = 1, 100
			req = f
		case i%3 == 0:
			req = wireMetadata("pipe")
		case i%3 == 1:
			req = wireProduce(-1, "pipe", int32(i%4), wireBatch{values: []string{fmt.Sprint(i)}}.bytes())
		default:
			req = wireFetch("pipe", 0, 0)
		}
		reqs = append(reqs, req)
		sent = append(sent, rig.Frame(req, int32(i), "rig")...)
	}
	w.SendRaw(sent)
	for i, req := range reqs {
		for _, code := range rig.ErrorCodes(w.Receive(req, int32(i))) {
			if code != 0 {
				t.Errorf("request %d (%T): code %d", i, req, code)
			}
		}
	}
}

// Case B6: the frame limit of every API, at it and one byte beyond. Produce has
// that of all frames, set lower here.
func TestWireFrameLimits(t *testing.T) {
	const most = 17 << 20
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Limits.Frame = most }
	})
	n := int64(0)
	for _, row := range api.Table() {
		limit := min(row.MaxFrame, most)
		if req := wireSample(row.Key, row.Max); req.IsFlexible() {
			w := r.Login(t, rig.Acme)
			w.SendRaw(wirePadded(req, 3, limit))
			w.Receive(req, 3)
			wireAlive(t, w)
		}
		w := r.Login(t, rig.Acme)
		w.SendRaw(binary.BigEndian.AppendUint32(nil, uint32(limit+1)))
		w.SendRaw(wireFrame(row.Key, row.Max, 3, nil, nil, nil)[4:])
		w.WantClosed()
		n++
		wireCounted(t, r, wire.FrameOversize, n)
	}
}

// Case B7: a byte after the last field closes the connection, at both ends of
// every window, except Metadata's and OffsetFetch's, which librdkafka pads.
func TestWireTrailingByte(t *testing.T) {
	r := rig.Start(t)
	n := int64(0)
	for _, row := range api.Table() {
		for _, version := range []int16{row.Min, row.Max} {
			req := wireSample(row.Key, version)
			w := r.Login(t, rig.Acme)
			w.SendRaw(wireSized(append(rig.Frame(req, 1, "rig"), 0)))
			if row.Key == 3 || row.Key == 9 {
				w.Receive(req, 1)
			} else {
				w.WantClosed()
				n++
			}
			wireCounted(t, r, wire.Malformed, n)
			w = r.Login(t, rig.Acme)
			frame := rig.Frame(req, 1, "rig")
			w.SendRaw(wireSized(frame[:len(frame)-1])) // and one that is missing
			w.WantClosed()
			n++
			wireCounted(t, r, wire.Malformed, n)
		}
	}
}

// librdkafka 2.16 asks for all topics with four zero bytes where version 9 has
// one, so the request is longer than its fields. These are its bytes.
func TestWireMetadataOfLibrdkafka(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	w.Ask(wireMetadata("listed"))
	for name, body := range map[string][]byte{
		"create":        {0, 0, 0, 0, 1, 0, 0, 0},
		"do not create": {0, 0, 0, 0, 0, 0, 0, 0},
	} {
		req := wireMetadata()
		req.Topics = nil
		w.SendRaw(wireFrame(3, 9, 7, []byte("rdkafka"), []byte{0}, body))
		got := w.Receive(req, 7).(*kmsg.MetadataResponse)
		if len(got.Topics) != 1 || *got.Topics[0].Topic != "listed" {
			t.Errorf("%s: %d topics, want the one", name, len(got.Topics))
		}
	}
}

// Case B8: a bad frame behind good ones that came with it takes nothing of
// their answers, though more bytes follow that nobody will read.
func TestWireBadFrameKeepsGoodAnswers(t *testing.T) {
	r := rig.Start(t)
	acksZero := rig.Frame(wireProduce(0, "no blanks", 0, wireBatch{values: []string{"v"}}.bytes()), 1, "rig")
	for name, bad := range map[string][]byte{
		"failed acks=0":       append(acksZero, make([]byte, 200<<10)...),
		"oversize":            append([]byte{0x7f, 0, 0, 0}, make([]byte, 200<<10)...),
		"short":               append([]byte{0, 0, 0, 2}, make([]byte, 200<<10)...),
		"unknown key":         append(wireFrame(999, 0, 1, nil, nil, nil), make([]byte, 200<<10)...),
		"unknown version":     append(wireFrame(3, 99, 1, nil, nil, nil), make([]byte, 200<<10)...),
		"half a frame behind": append(wireFrame(3, 9, 1, nil, []byte{0}, []byte{200}), 0, 0, 0, 200, 0, 3),
		"malformed":           append(wireFrame(3, 9, 1, nil, []byte{0}, []byte{200}), make([]byte, 200<<10)...),
	} {
		t.Run(name, func(t *testing.T) {
			w := r.Login(t, rig.Acme)
			req := wireProduce(-1, "kept", 0, wireBatch{values: []string{"v"}}.bytes())
			var sent []byte
			for i := range 40 {
				sent = append(sent, rig.Frame(req, int32(i), "rig")...)
			}
			if _, err := w.Write(append(sent, bad...)); err != nil {
				t.Logf("the write met the close: %v", err)
			}
			for i := range 40 {
				w.Receive(req, int32(i))
			}
			if b, err := io.ReadAll(w); len(b) != 0 || err != nil {
				t.Errorf("%d bytes and %v, want the plain end: a reset can take answers with it", len(b), err)
			}
		})
	}
}
