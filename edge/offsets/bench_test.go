package offsets_test

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/edge/offsets"
	"github.com/queen-mq/queen-edge/internal/cell"
	"github.com/queen-mq/queen-edge/internal/cell/control"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// countedCell counts the calls to a cell.
type countedCell struct {
	*proxyclient.Client
	calls atomic.Int64
}

func (c *countedCell) KV(ctx context.Context, s tenancy.Scope, ops []proxyclient.KVOp) ([]proxyclient.KVResult, error) {
	c.calls.Add(1)
	return c.Client.KV(ctx, s, ops)
}

// realCell is an embedded cell on disk, behind HTTP, and a Scope of a tenant.
func realCell(b *testing.B) (*countedCell, tenancy.Scope) {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	c, err := cell.Open(cell.Config{Dir: b.TempDir(), SharedHosts: []string{"127.0.0.1"}})
	must(err)
	limits := control.Overrides{"max_batch_items": json.RawMessage("100000")}
	_, err = c.Control().CreateCluster(control.NewCluster{Slug: "acme", Overrides: limits})
	must(err)
	scopes, err := control.ParseScopes("consume", "read")
	must(err)
	text, _, err := c.Control().CreateKey(control.NewKey{Cluster: "acme", Scopes: scopes})
	must(err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx, ln) }()
	client, err := proxyclient.New(proxyclient.Config{URL: "http://" + ln.Addr().String()})
	must(err)
	b.Cleanup(func() {
		client.Close()
		stop()
		must(<-served)
		must(c.Close())
	})
	verify := tenancy.NewVerifier[[]proxyclient.Queue](client, tenancy.VerifierConfig{})
	p, err := verify.Verify(ctx, tenancy.NewClaim(tenancy.NewSecret(text), ""))
	must(err)
	return &countedCell{Client: client}, p.Scope
}

// BenchmarkGroupOf50 commits for 50 consumers of one group, each with six
// partitions and one commit at a time: through the store, and with a call for
// each as it would be without.
func BenchmarkGroupOf50(b *testing.B) {
	const consumers, width, commits = 50, 6, 2000
	one := func(c *countedCell) func(context.Context, tenancy.Scope, []offsets.Entry) error {
		var turn sync.Mutex // commits of a group are serial
		return func(ctx context.Context, s tenancy.Scope, entries []offsets.Entry) error {
			turn.Lock()
			defer turn.Unlock()
			ops := make([]proxyclient.KVOp, len(entries))
			for i := range entries {
				ops[i] = offsets.Put("g", &entries[i], time.Now())
			}
			_, err := c.KV(ctx, s, ops)
			return err
		}
	}
	shared := func(c *countedCell) func(context.Context, tenancy.Scope, []offsets.Entry) error {
		st := offsets.New(offsets.Config{Cell: c})
		return func(ctx context.Context, s tenancy.Scope, entries []offsets.Entry) error {
			_, err := st.Commit(ctx, s, "g", 1, nil, entries)
			return err
		}
	}
	for name, how := range map[string]func(*countedCell) func(context.Context, tenancy.Scope, []offsets.Entry) error{"shared": shared, "one-call-each": one} {
		b.Run(name, func(b *testing.B) {
			c, s := realCell(b)
			commit := how(c)
			var mu sync.Mutex
			var took []time.Duration
			var busy time.Duration
			for b.Loop() {
				left := atomic.Int64{}
				left.Store(commits)
				began := time.Now()
				var wg sync.WaitGroup
				for w := range consumers {
					wg.Go(func() {
						own := partitions(width * consumers)[w*width : (w+1)*width]
						for n := left.Add(-1); n >= 0; n = left.Add(-1) {
							at := time.Now()
							if err := commit(context.Background(), s, entries(n, own...)); err != nil {
								b.Error(err)
								return
							}
							mu.Lock()
							took = append(took, time.Since(at))
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				busy += time.Since(began)
			}
			slices.Sort(took)
			b.ReportMetric(float64(len(took))/busy.Seconds(), "commits/s")
			b.ReportMetric(float64(c.calls.Load())/float64(len(took)), "calls/commit")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
