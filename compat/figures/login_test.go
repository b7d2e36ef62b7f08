package figures

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// BenchmarkBadLogins is what 200 bad logins a second from one address, each with
// another token, do to another tenant's produce latency, beside as many
// connections that never log in. Rounds are pairs of both, in turns.
func BenchmarkBadLogins(b *testing.B) {
	rounds, length := 5, 10*time.Second
	if os.Getenv("QE_FULL") != "" {
		length = 30 * time.Second
	}
	r := rig.Start(b, func(o *rig.Options) {
		o.Config = func(c *config.Config) { c.LoginTimeout = 10 * time.Second }
	})
	c := r.Kafka(b, rig.Globex, kgo.DefaultProduceTopic("latency"), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for b.Loop() {
		var ratios, quiet, attacked []float64
		for i := range rounds {
			p99 := map[bool]float64{}
			for _, bad := range [][]bool{{false, true}, {true, false}}[i%2] {
				p99[bad] = latencyBeside(b, c, length, func(n int) { stranger(r, n, bad) })
			}
			quiet, attacked = append(quiet, p99[false]), append(attacked, p99[true])
			ratios = append(ratios, p99[true]/p99[false])
			b.Logf("round %d: p99 %.2f ms beside connections, %.2f ms beside bad logins", i, p99[false], p99[true])
		}
		b.ReportMetric(median(quiet), "p99-ms-connections")
		b.ReportMetric(median(attacked), "p99-ms-bad-logins")
		b.ReportMetric(median(ratios), "ratio")
	}
	b.ReportMetric(0, "ns/op")
}

// latencyBeside is the p99, in milliseconds, of single records sent one after the
// other while 200 strangers a second come.
func latencyBeside(b *testing.B, c *kgo.Client, length time.Duration, stranger func(n int)) float64 {
	b.Helper()
	const perSecond = 200
	var wg sync.WaitGroup
	defer wg.Wait() // the next half does not meet those of this one
	stop := make(chan struct{})
	wg.Go(func() {
		tick := time.NewTicker(time.Second / perSecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				wg.Go(func() { stranger(n) })
			}
		}
	})
	var took []float64
	for begin := time.Now(); time.Since(begin) < length; {
		sent := time.Now()
		if err := c.ProduceSync(b.Context(), kgo.StringRecord("v")).FirstErr(); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(sent).Microseconds())/1000)
	}
	close(stop)
	slices.Sort(took)
	return took[len(took)*99/100]
}

// stranger connects from 127.0.0.2 and is told that its token is bad, or says
// nothing for a second.
func stranger(r *rig.Rig, n int, bad bool) {
	dialer := &net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	nc, err := tls.DialWithDialer(dialer, "tcp", r.Addr, r.TLS())
	if err != nil {
		return
	}
	defer nc.Close() //nolint:errcheck // it is over
	if !bad {
		_ = nc.SetDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, nc)
		return
	}
	_ = nc.SetDeadline(time.Now().Add(patience))
	hs, auth := kmsg.NewPtrSASLHandshakeRequest(), kmsg.NewPtrSASLAuthenticateRequest()
	hs.Version, hs.Mechanism = 1, "PLAIN"
	auth.Version, auth.SASLAuthBytes = 2, fmt.Appendf(nil, "\x00me\x00qk_live_bad%d.%d", n, time.Now().UnixNano())
	_, _ = nc.Write(append(rig.Frame(hs, 1, "rig"), rig.Frame(auth, 2, "rig")...))
	_, _ = io.Copy(io.Discard, nc)
}

// BenchmarkRevocation is how long after a key's revocation its connections are
// closed: one that is idle, one in a long poll, one that produces. The re-check is
// set to its shortest, a second.
func BenchmarkRevocation(b *testing.B) {
	r := rig.Start(b, func(o *rig.Options) { o.Config = func(c *config.Config) { c.Reverify = time.Second } })
	scopes, err := control.ParseScopes("produce", "consume", "read")
	must(b, err)
	for b.Loop() {
		var took []float64
		for range 10 {
			text, key, err := r.Cell.Control().CreateKey(control.NewKey{Cluster: "acme", Scopes: scopes})
			must(b, err)
			ws := make([]*rig.Wire, 3)
			for i := range ws {
				ws[i] = r.Dial(b)
				if resp := ws[i].Authenticate("me", text); resp.ErrorCode != 0 {
					b.Fatalf("code %d", resp.ErrorCode)
				}
			}
			meta := kmsg.NewPtrMetadataRequest()
			meta.Version, meta.AllowAutoTopicCreation = 4, true
			topic := kmsg.NewMetadataRequestTopic()
			topic.Topic = kmsg.StringPtr("t")
			meta.Topics = append(meta.Topics, topic)
			ws[1].Ask(meta)
			ws[1].Send(longPoll("t"))
			must(b, r.Cell.Control().RevokeKey(key.ID))
			begin := time.Now()
			for busy := true; busy; { // the third goes on asking
				if _, err := ws[2].Write(rig.Frame(meta, 7, "rig")); err != nil {
					break
				}
				_, err := ws[2].ReadFrame()
				busy = err == nil
			}
			for _, w := range ws[:2] {
				_, _ = io.Copy(io.Discard, w)
			}
			took = append(took, time.Since(begin).Seconds())
			for _, w := range ws {
				_ = w.Close()
			}
		}
		b.ReportMetric(median(took), "s-median")
		b.ReportMetric(slices.Max(took), "s-most")
	}
	b.ReportMetric(0, "ns/op")
}

func longPoll(topic string) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MinBytes, req.MaxBytes, req.MaxWaitMillis = 4, 1, 1<<20, 50_000
	t, p := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	t.Topic, p.PartitionMaxBytes = topic, 1<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}
