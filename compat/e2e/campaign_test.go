package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// Ceilings of the campaign's gateway. What it may have in memory at once is
// their sum; the collector lets a heap grow to twice what lives. The rest is the
// cell, the attackers and the good tenant, which share the process.
const (
	campaignInFlight = 128 << 20
	campaignInflated = 64 << 20
	campaignAnswers  = 64 << 20
	campaignRest     = 128 << 20
	campaignBound    = 2*(campaignInFlight+campaignInflated+campaignAnswers) + campaignRest
	// campaignHang is how long a bad connection may stay: above every deadline of
	// the campaign's gateway, in sum.
	campaignHang = rig.Patience
)

// campaign is one run of attackers against a gateway.
type campaign struct {
	t     *testing.T
	r     *rig.Rig
	token string
	seed  uint64
	dials atomic.Int64
	hangs atomic.Int64
}

// The campaign: whatever strangers and a hostile tenant send, nothing panics or
// hangs, every connection ends for one reason, memory stays below what the
// ceilings allow, and another tenant loses nothing.
func TestCampaign(t *testing.T) {
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(c *config.Config) {
			c.LoginTimeout, c.Limits.TLSHandshake = 2*time.Second, time.Second
			c.Limits.FrameStall, c.Limits.RoomWait = time.Second, time.Second
			c.Limits.RefusalHold = time.Millisecond
			c.Limits.InFlightBytes, c.Limits.InflatedBytes, c.Limits.AnswerBytes = campaignInFlight, campaignInflated, campaignAnswers
			c.Limits.DecompressedBytes = campaignBomb - 1
		}
	})
	c := &campaign{t: t, r: r, token: r.Key(rig.Acme), seed: campaignSeed()}
	attacks := c.attacks() // made before memory is measured
	before := wireHolds()
	good := newGoodTenant(c)
	good.rounds(200)
	quiet := good.p99()

	runtime.GC()
	stop, peak := make(chan struct{}), make(chan uint64, 1)
	go watchHeap(stop, peak)
	start := time.Now()
	done := make(chan struct{})
	go func() { defer close(done); c.run(attacks) }()
	for over := false; !over; {
		good.rounds(10)
		select {
		case <-done:
			over = true
		default:
		}
	}
	took := time.Since(start)
	close(stop)
	heap := <-peak
	good.leave()

	wireBack(t, r, before)
	t.Logf("seed %d: %d attacks on %d connections in %v", c.seed, len(attacks), c.dials.Load(), took.Round(time.Millisecond))
	t.Logf("the good tenant's p99: %v alone, %v beside the campaign; %d records, none lost", quiet, good.p99(), good.next)
	t.Logf("peak heap %d MiB, bound %d MiB", heap>>20, campaignBound>>20)
	c.verdict(heap)
}

// verdict is what must hold afterwards.
func (c *campaign) verdict(heap uint64) {
	// A connection gives its place back before its end is counted.
	rig.Eventually(c.t, "a reason for each connection", func() bool {
		sum, _ := c.reasons()
		return sum >= c.dials.Load()
	})
	sum, reasons := c.reasons()
	c.t.Logf("reasons:%s", reasons)
	if n := c.r.Gateway.Closed(wire.Internal); n != 0 {
		c.t.Errorf("%d panics", n)
	}
	if n := c.hangs.Load(); n != 0 {
		c.t.Errorf("%d connections hang", n)
	}
	if sum != c.dials.Load() {
		c.t.Errorf("%d reasons for %d connections", sum, c.dials.Load())
	}
	if heap > campaignBound {
		c.t.Errorf("peak heap %d bytes, bound %d", heap, campaignBound)
	}
}

// reasons is how many connections have ended, and for what.
func (c *campaign) reasons() (sum int64, text string) {
	for reason := wire.Reason(0); reason.String() != "unknown"; reason++ {
		if n := c.r.Gateway.Closed(reason); n > 0 {
			sum += n
			text += fmt.Sprintf(" %s %d", reason, n)
		}
	}
	return sum, text
}

// run lets the attacks loose, some at a time.
func (c *campaign) run(attacks []attack) {
	const attackers = 8
	work := make(chan attack)
	var wg sync.WaitGroup
	for range attackers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for a := range work {
				c.launch(a)
			}
		}()
	}
	for _, a := range attacks {
		work <- a
	}
	close(work)
	wg.Wait()
}

// campaignSeed is 1, or anything with QE_FULL.
func campaignSeed() uint64 {
	if os.Getenv("QE_FULL") == "1" {
		return rand.Uint64()
	}
	return 1
}

// watchHeap samples the heap until it is told to stop.
func watchHeap(stop <-chan struct{}, peak chan<- uint64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	most := uint64(0)
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
		select {
		case <-stop:
			peak <- most
			return
		case <-tick.C:
		}
	}
}

// goodTenant produces and reads back all the while.
type goodTenant struct {
	c        *campaign
	in, out  *rig.Wire
	next     int64
	produced []time.Duration // of the last p99 on
}

func newGoodTenant(c *campaign) *goodTenant {
	c.dials.Add(2)
	g := &goodTenant{c: c, in: c.r.Login(c.t, rig.Globex), out: c.r.Login(c.t, rig.Globex)}
	g.in.Ask(wireMetadata("good"))
	return g
}

// rounds produces and reads n records; each must be there, in its place.
func (g *goodTenant) rounds(n int) {
	for range n {
		deadline := time.Now().Add(rig.Patience)
		_, _ = g.in.SetDeadline(deadline), g.out.SetDeadline(deadline)
		value := fmt.Sprintf("record %d", g.next)
		start := time.Now()
		if at := wireMustStore(g.c.t, g.in, "good", 0, wireBatch{values: []string{value}}); at != g.next {
			g.c.t.Fatalf("record %d is at %d", g.next, at)
		}
		g.produced = append(g.produced, time.Since(start))
		p := g.out.Ask(wireFetch("good", 0, g.next)).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		got := recordsOf(g.c.t, &p)
		if len(got) != 1 || got[0].offset != g.next || got[0].value != value {
			g.c.t.Fatalf("record %d is read as %v", g.next, got)
		}
		g.next++
	}
}

// p99 is of the produces since the last time.
func (g *goodTenant) p99() time.Duration {
	slices.Sort(g.produced)
	d := g.produced[len(g.produced)*99/100]
	g.produced = g.produced[:0]
	return d.Round(time.Microsecond)
}

func (g *goodTenant) leave() { _, _ = g.in.Close(), g.out.Close() }
