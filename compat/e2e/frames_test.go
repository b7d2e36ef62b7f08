package e2e

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// frameLog has every request frame that a real client wrote, whole.
type frameLog struct {
	mu     sync.Mutex // guards frames
	frames [][]byte
}

// of are the requests of an API so far, decoded, and their sizes on the wire.
func (l *frameLog) of(tb testing.TB, key int16) (reqs []kmsg.Request, sizes []int) {
	tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.frames {
		if int16(binary.BigEndian.Uint16(f[4:])) != key {
			continue
		}
		req := kmsg.RequestForKey(key)
		req.SetVersion(int16(binary.BigEndian.Uint16(f[6:])))
		body := f[14+max(0, int(int16(binary.BigEndian.Uint16(f[12:])))):] // behind the client id
		if req.IsFlexible() {
			body = body[1:] // no tags
		}
		if err := req.ReadFrom(body); err != nil {
			tb.Fatalf("a frame of %s: %v", kmsg.NameForKey(key), err)
		}
		reqs, sizes = append(reqs, req), append(sizes, len(f))
	}
	return reqs, sizes
}

// frameConn logs the frames that are written to a connection.
type frameConn struct {
	net.Conn
	log  *frameLog
	rest []byte // of a frame that is not whole yet
}

func (c *frameConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.rest = append(c.rest, b[:n]...)
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	for len(c.rest) >= 4 {
		size := 4 + int(binary.BigEndian.Uint32(c.rest))
		if len(c.rest) < size {
			break
		}
		c.log.frames = append(c.log.frames, c.rest[:size:size])
		c.rest = c.rest[size:]
	}
	return n, err
}

// loggedClient is a franz-go client whose requests are logged.
func loggedClient(tb testing.TB, r *rig.Rig, opts ...kgo.Opt) (*kgo.Client, *frameLog) {
	tb.Helper()
	log := &frameLog{}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&tls.Dialer{Config: r.TLS()}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &frameConn{Conn: conn, log: log}, nil
	}
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(r.Addr), kgo.Dialer(dial), kgo.SASL(plain.Auth{User: "any", Pass: r.Key(rig.Acme)}.AsMechanism()),
	}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c, log
}

// pollUntil polls until so many records came.
func pollUntil(tb testing.TB, c *kgo.Client, n int) []*kgo.Record {
	tb.Helper()
	ctx := rig.Context(tb)
	var out []*kgo.Record
	for len(out) < n {
		f := c.PollFetches(ctx)
		if err := f.Err(); err != nil {
			tb.Fatalf("%d of %d records, then %v", len(out), n, err)
		}
		out = append(out, f.Records()...)
	}
	return out
}

// A real client's Fetch goes on with its session: of a hundred partitions it names
// each once, and one that adds none takes less than 200 bytes. (It begins with
// those that it has, and may add the others later.)
func TestSessionOfARealClient(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) { o.Config = func(c *config.Config) { c.DefaultPartitions = 100 } })
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("wide"))
	at := make(map[int32]kgo.Offset)
	for i := range int32(100) {
		at[i] = kgo.NewOffset().At(0)
	}
	c, log := loggedClient(t, r, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"wide": at}))
	for i := range int32(3) { // a fetch that brings records is followed by another
		wireMustStore(t, w, "wide", 33*i, wireBatch{values: []string{"v"}})
		pollUntil(t, c, 1)
	}
	rig.Eventually(t, "a fetch behind the third record", func() bool {
		reqs, _ := log.of(t, 1)
		return len(reqs) >= 4
	})
	reqs, sizes := log.of(t, 1)
	named := make(map[int32]bool)
	for i, req := range reqs {
		req := req.(*kmsg.FetchRequest)
		added := 0
		for _, topic := range req.Topics {
			for _, p := range topic.Partitions {
				if !named[p.Partition] {
					named[p.Partition] = true
					added++
				}
			}
		}
		if req.Version != 17 || req.SessionEpoch != int32(i) || i > 0 && req.SessionID == 0 {
			t.Errorf("fetch %d: version %d, epoch %d of session %d", i, req.Version, req.SessionEpoch, req.SessionID)
		}
		if again := partitionsOf(req) - added; added == 0 && sizes[i] >= 200 || again > 1 {
			t.Errorf("fetch %d takes %d bytes and names %d partitions again", i, sizes[i], again)
		}
	}
	if len(named) != 100 {
		t.Errorf("%d partitions are fetched", len(named))
	}
	t.Logf("bytes of each fetch: %v", sizes)
}

func partitionsOf(req *kmsg.FetchRequest) (n int) {
	for _, topic := range req.Topics {
		n += len(topic.Partitions)
	}
	return n
}

// Leader epochs are −1 everywhere: a real client commits its marks, resumes,
// seeks and goes on when its topic grows, and never asks where an epoch ends.
func TestLeaderEpochsOfARealClient(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("epochs"))
	wireMustStore(t, w, "epochs", 0, wireBatch{values: []string{"0", "1", "2", "3", "4", "5"}})
	ctx := rig.Context(t)
	group := []kgo.Opt{
		kgo.ConsumerGroup("g"), kgo.ConsumeTopics("epochs"), kgo.AutoCommitMarks(), kgo.AutoCommitInterval(time.Hour),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMinAge(10 * time.Millisecond), kgo.MetadataMaxAge(500 * time.Millisecond),
	}
	var logs []*frameLog
	begin := func() *kgo.Client {
		c, log := loggedClient(t, r, group...)
		logs = append(logs, log)
		return c
	}
	c := begin()
	records := pollUntil(t, c, 6)
	for _, rec := range records {
		if rec.LeaderEpoch != -1 {
			t.Errorf("record %d has leader epoch %d", rec.Offset, rec.LeaderEpoch)
		}
	}
	c.MarkCommitRecords(records[:3]...)
	if err := c.CommitMarkedOffsets(ctx); err != nil {
		t.Fatalf("commit: %v", err)
	}
	c.Close()

	c = begin() // resumes where it was
	if got := pollUntil(t, c, 3); got[0].Offset != 3 {
		t.Errorf("resumed at %d, want 3", got[0].Offset)
	}
	// An epoch of another cluster's reads alike; marks count on from −1 alone.
	for i, epoch := range []int32{0, 7, -1} {
		offset := int64(i) + 1
		c.SetOffsets(map[string]map[int32]kgo.EpochOffset{"epochs": {0: {Epoch: epoch, Offset: offset}}})
		if got := pollUntil(t, c, 6-int(offset)); got[0].Offset != offset {
			t.Errorf("sought with epoch %d to %d, want %d", epoch, got[0].Offset, offset)
		}
	}
	if _, err := kadm.NewClient(c).UpdatePartitions(ctx, 6, "epochs"); err != nil {
		t.Fatalf("widen: %v", err)
	}
	wireMustStore(t, w, "epochs", 5, wireBatch{values: []string{"new"}})
	if got := pollUntil(t, c, 1); got[0].Partition != 5 {
		t.Errorf("after the topic grew: partition %d", got[0].Partition)
	}
	wireMustStore(t, w, "epochs", 0, wireBatch{values: []string{"last"}})
	last := pollUntil(t, c, 1)
	c.MarkCommitRecords(last...)
	if err := c.CommitMarkedOffsets(ctx); err != nil || last[0].Offset != 6 {
		t.Errorf("the last record is %d, its commit %v", last[0].Offset, err)
	}
	c.Close()
	if got := committed(t, w, offsetRequest(9, "g", "epochs")); !strings.HasPrefix(got[0], "epochs/0=7 ") { // its member id is the metadata
		t.Errorf("committed: %v", got)
	}
	for _, log := range logs {
		if asked, _ := log.of(t, 23); len(asked) > 0 {
			t.Errorf("%d requests for the end of an epoch", len(asked))
		}
		commits, _ := log.of(t, 8)
		for _, commit := range commits {
			for _, topic := range commit.(*kmsg.OffsetCommitRequest).Topics {
				for _, p := range topic.Partitions {
					if p.LeaderEpoch != -1 {
						t.Errorf("partition %d is committed with epoch %d", p.Partition, p.LeaderEpoch)
					}
				}
			}
		}
	}
}
