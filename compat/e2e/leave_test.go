package e2e

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// patientLinger gives a half-closed connection a test's patience.
func patientLinger(o *rig.Options) {
	o.Config = func(c *config.Config) { c.Limits.Linger, c.DrainGrace = rig.Patience/2, rig.Patience }
}

// wantEnd reads to the end of what the gateway sends, and leaves this side open.
func wantEnd(t *testing.T, w *rig.Wire) {
	t.Helper()
	if b, err := io.ReadAll(w); err != nil || len(b) > 0 {
		t.Fatalf("%d bytes, %v; want the end", len(b), err)
	}
}

// B7: what a client had on its way when the gateway closed is read: an acks=0
// produce is stored, of whatever version; what wants an answer is not done, for
// its client does it again elsewhere.
func TestDrainStoresAcksZeroOnItsWay(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plaintext=%v", plain), func(t *testing.T) {
			r := rig.Start(t, patientLinger, func(o *rig.Options) { o.Plain = plain })
			w := r.Login(t, rig.Acme)
			w.Ask(wireMetadata("t"))
			stopped := wireStop(t, r)
			wantEnd(t, w)
			var sent []byte
			for i := range 40 {
				req := wireProduce(0, "t", 0, wireBatch{values: []string{fmt.Sprintf("late-%d", i)}}.bytes())
				req.Version = int16(3 + i%10) // 3 to 12
				sent = append(sent, rig.Frame(req, 1, "rig")...)
				switch i % 4 {
				case 1:
					sent = append(sent, rig.Frame(wireMetadata("made-late"), 2, "rig")...)
				case 2:
					sent = append(sent, rig.Frame(wireProduce(-1, "t", 1, wireBatch{values: []string{"answered"}}.bytes()), 3, "rig")...)
				}
			}
			// In pieces that end anywhere in a frame.
			for len(sent) > 0 {
				n := min(len(sent), 333)
				w.SendRaw(sent[:n])
				sent = sent[n:]
			}
			_ = w.Close()
			<-stopped
			wireCounted(t, r, wire.Draining, 1)

			r.StartGateway(t)
			w = r.Login(t, rig.Acme)
			stored, other := wireRead(w, "t", 0, 0), wireRead(w, "t", 1, 0)
			got := recordsOf(t, &stored)
			if len(got) != 40 || other.HighWatermark != 0 {
				t.Fatalf("%d records without an answer are stored, want 40; %d that wanted one, want 0", len(got), other.HighWatermark)
			}
			for i, rec := range got {
				if rec.value != fmt.Sprintf("late-%d", i) {
					t.Fatalf("record %d is %q", i, rec.value)
				}
			}
			all := wireMetadata()
			all.Topics = nil
			if names := w.Ask(all).(*kmsg.MetadataResponse); len(names.Topics) != 1 {
				t.Errorf("%d topics: a request that wanted an answer was served", len(names.Topics))
			}
		})
	}
}

// A client that stays after the end, or goes on sending, is not waited for.
func TestDrainDoesNotWaitForEver(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Limits.Linger, c.DrainGrace = 50*time.Millisecond, rig.Patience }
	})
	stays, floods := r.Login(t, rig.Acme), r.Login(t, rig.Acme)
	floods.Ask(wireMetadata("t"))
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		frame := rig.Frame(wireProduce(0, "t", 0, wireBatch{values: []string{"v"}}.bytes()), 1, "rig")
		for {
			if _, err := floods.Write(frame); err != nil {
				return
			}
		}
	}()
	r.StopGateway(t)
	wantEnd(t, stays)
	<-flooded
	wireCounted(t, r, wire.Draining, 2)
}

// A frame that is under way when the gateway drains is read to its end and
// answered; one whose rest does not come is given up in time, as a drain.
func TestDrainFinishesTheFrameUnderWay(t *testing.T) {
	r := rig.Start(t, patientLinger)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("t"))
	req := wireProduce(-1, "t", 0, wireBatch{values: []string{"v"}}.bytes())
	frame := rig.Frame(req, 7, "rig")
	other := r.Login(t, rig.Acme)
	w.SendRaw(frame[:len(frame)-10])
	wireAlive(t, other) // the gateway has had time to read it
	stopped := wireStop(t, r)
	other.WantClosed() // the drain has begun
	w.SendRaw(frame[len(frame)-10:])
	if p := w.Receive(req, 7).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
		t.Errorf("code %d", p.ErrorCode)
	}
	w.WantClosed()
	<-stopped
	wireCounted(t, r, wire.Draining, 2)

	r = rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.Limits.Linger, c.DrainGrace = 20*time.Millisecond, rig.Patience }
	})
	w = r.Login(t, rig.Acme)
	w.SendRaw(frame[:len(frame)-10])
	wireAlive(t, r.Login(t, rig.Acme))
	r.StopGateway(t)
	wantEnd(t, w)
	wireCounted(t, r, wire.Draining, 2)
}

// A client that never pauses is left behind what has come: every request that
// was read is answered, and none that was not is done.
func TestDrainOfAClientThatNeverPauses(t *testing.T) {
	r := rig.Start(t, patientLinger)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("t"))
	req := wireProduce(-1, "t", 0, wireBatch{values: []string{"v"}}.bytes())
	go func() {
		for id := int32(1); ; id++ {
			if _, err := w.Write(rig.Frame(req, id, "rig")); err != nil {
				return
			}
		}
	}()
	const before = 50
	answered := int64(0)
	var stopped <-chan struct{}
	for {
		b, err := w.ReadFrame()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		answered++
		resp, err := rig.Decode(req, int32(answered), b)
		if err != nil {
			t.Fatal(err)
		}
		if p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != answered-1 {
			t.Fatalf("answer %d: code %d, offset %d", answered, p.ErrorCode, p.BaseOffset)
		}
		if answered == before {
			stopped = wireStop(t, r)
		}
	}
	_ = w.Close()
	<-stopped
	r.StartGateway(t)
	if end := wireEnd(t, r.Login(t, rig.Acme), "t", 0); end != answered {
		t.Errorf("%d requests are answered and %d are done", answered, end)
	}
}

// aging is a system with topics whose connections become this old. What takes
// long is done before ages begin to matter.
func aging(t *testing.T, age time.Duration, topics []string, opts ...func(*rig.Options)) *rig.Rig {
	t.Helper()
	old := time.Duration(0)
	r := rig.Start(t, append(opts, func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.ConnectionMaxAge, c.Group.JoinDelay = old, 0
			c.Limits.Linger = rig.Patience / 2
		}
	})...)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata(topics...))
	_ = w.Close()
	r.StopGateway(t)
	old = age
	r.StartGateway(t)
	return r
}

// endOf is a partition's high watermark, asked for until a connection is young
// enough for it.
func endOf(t *testing.T, r *rig.Rig, topic string) int64 {
	t.Helper()
	ends, err := kadm.NewClient(r.Kafka(t, rig.Acme)).ListEndOffsets(rig.Context(t), topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	return end.Offset
}

// A connection that is too old ends between two requests: one that rests at
// once, one whose long poll waits behind its answer. What was on its way and
// wants no answer is stored.
func TestAgeEndsBetweenRequests(t *testing.T) {
	t.Parallel()
	var relay wireRelay
	r := aging(t, 3*time.Second, []string{"t"}, func(o *rig.Options) { o.CellAt = relay.at(t) })
	_ = r.Login(t, rig.Acme).Close() // the login of the others is a known one
	hold := relay.holding("/api/v1/fetch")
	waiting, rests, other := r.Login(t, rig.Acme), r.Login(t, rig.Acme), r.Login(t, rig.Acme)
	req := wireFetch("t", 0, 0)
	id := waiting.Send(req)
	<-hold.reached
	wantEnd(t, rests)
	rests.SendRaw(rig.Frame(wireProduce(0, "t", 0, wireBatch{values: []string{"late"}}.bytes()), 1, "rig"))
	_ = rests.Close()
	wantEnd(t, other)
	_ = other.Close()
	wireCounted(t, r, wire.ConnectionAge, 2)
	r.Login(t, rig.Acme).WantClosed() // so that the long poll's gap is long overdue
	wireCounted(t, r, wire.ConnectionAge, 3)
	close(hold.release)
	if p := waiting.Receive(req, id).(*kmsg.FetchResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
		t.Errorf("code %d", p.ErrorCode)
	}
	waiting.WantClosed()
	wireCounted(t, r, wire.ConnectionAge, 4)
	if end := endOf(t, r, "t"); end != 1 {
		t.Errorf("%d records, want the late one", end)
	}
}

// One that never pauses ends as well; all that was read is answered.
func TestAgeOfAClientThatNeverPauses(t *testing.T) {
	t.Parallel()
	r := aging(t, 2*time.Second, []string{"t"})
	w := r.Login(t, rig.Acme)
	req := wireProduce(-1, "t", 0, wireBatch{values: []string{"v"}}.bytes())
	go func() {
		for id := int32(1); ; id++ {
			if _, err := w.Write(rig.Frame(req, id, "rig")); err != nil {
				return
			}
		}
	}()
	answered := int64(0)
	for {
		b, err := w.ReadFrame()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		answered++
		if _, err := rig.Decode(req, int32(answered), b); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	wireCounted(t, r, wire.ConnectionAge, 1)
	if end := endOf(t, r, "t"); end != answered {
		t.Errorf("%d requests are answered and %d are done", answered, end)
	}
}

// Real clients connect again without an error: nothing is lost with or without
// acknowledgments, and a group does not rebalance.
func TestAgeWithRealClients(t *testing.T) {
	t.Parallel()
	const age, records, ends = 300 * time.Millisecond, 100, 6
	r := aging(t, age, []string{"acked", "unacked"})
	ctx := rig.Context(t)
	var failed []error
	hook := kgo.WithHooks(groupErrors{&failed})
	consumer := r.Kafka(t, rig.Acme, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("acked", "unacked"), hook,
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	acked := r.Kafka(t, rig.Acme, kgo.ProducerLinger(0))
	unacked := r.Kafka(t, rig.Acme, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite(), kgo.ProducerLinger(0))

	produced := 0
	for produced < records || r.Gateway.Closed(wire.ConnectionAge) < ends {
		value := []byte(fmt.Sprint(produced))
		for _, err := range []error{
			acked.ProduceSync(ctx, &kgo.Record{Topic: "acked", Value: value}).FirstErr(),
			unacked.ProduceSync(ctx, &kgo.Record{Topic: "unacked", Value: value}).FirstErr(),
		} {
			if err != nil {
				t.Fatalf("record %d: %v", produced, err)
			}
		}
		produced++
	}
	got := map[string]map[string]int{"acked": {}, "unacked": {}}
	for len(got["acked"]) < produced || len(got["unacked"]) < produced {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("poll, with %d and %d of %d read: %v", len(got["acked"]), len(got["unacked"]), produced, err)
		}
		fetches.EachRecord(func(rec *kgo.Record) { got[rec.Topic][string(rec.Value)]++ })
	}
	for topic, values := range got {
		for value, n := range values {
			if n != 1 {
				t.Errorf("%s: record %s was read %d times", topic, value, n)
			}
		}
	}
	if err := consumer.CommitUncommittedOffsets(ctx); err != nil {
		t.Errorf("commit: %v", err)
	}
	if n := r.Gateway.Groups().Rebalances; n[1]+n[2]+n[3] != 0 {
		t.Errorf("rebalances %v", n)
	}
	if len(failed) > 0 {
		t.Errorf("the group met errors: %v", failed)
	}
}

// groupErrors collects what ends a group member's session.
type groupErrors struct{ errs *[]error }

// OnGroupManageError implements kgo.HookGroupManageError.
func (g groupErrors) OnGroupManageError(err error) { *g.errs = append(*g.errs, err) }
