package api

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/sni"
	"github.com/queen-mq/queen-edge/tenancy"
)

// An answer of Metadata takes its memory before it is made: while one waits to
// be written, the tenant's next waits in line, and its connection is closed when
// that takes too long. Another tenant's has room of its own.
func TestMetadataTakesItsAnswersMemory(t *testing.T) {
	cell := listingCell{queues: []proxyclient.Queue{{Name: "wide", ID: "wide", Partitions: 100_000}}}
	acme, globex := someScope(t, "acme"), someScope(t, "globex")
	for what, topics := range map[string][]kmsg.MetadataRequestTopic{"all topics": nil, "one by name": {{Topic: kmsg.StringPtr("wide")}}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const one = 100_000 * metadataPartitionBytes
				answers := tenancy.NewCeiling(one*4, 0.45) // two for one tenant
				h := New(Config{
					Catalog:       catalog.New(cell, catalog.Config{DefaultPartitions: 1, MaxPartitions: 1 << 20, MaxTenants: 4}),
					MetadataNames: 10, MetadataPartitions: 200_000, Answers: answers, RoomWait: 10 * time.Second,
				})
				req := kmsg.NewPtrMetadataRequest()
				req.Version, req.Topics = 9, topics
				ask := func(s tenancy.Scope) (*Conn, error) {
					c := h.NewConn(nil, sni.Lane{})
					h.Prove(c, s)
					resp, err := h.metadata(t.Context(), Call{Scope: s, Conn: c, Version: 9}, req)
					if err == nil && len(resp.Topics[0].Partitions) != 100_000 {
						t.Errorf("%d partitions", len(resp.Topics[0].Partitions))
					}
					return c, err
				}
				first, err := ask(acme)
				if held := answers.Held(acme); err != nil || held < one || held > one+one/10 {
					t.Fatalf("the first answer: %v, %d bytes taken", err, held)
				}
				second, err := ask(acme)
				if err != nil {
					t.Fatalf("the second answer: %v", err)
				}
				start := time.Now()
				_, err = ask(acme)
				var closed *wire.Close
				if !errors.As(err, &closed) || closed.Reason != wire.CapacityBytes || time.Since(start) != 10*time.Second {
					t.Errorf("without memory: %v after %v", err, time.Since(start))
				}
				other, err := ask(globex)
				if err != nil {
					t.Errorf("another tenant: %v", err)
				}
				other.Close()
				first.Written()
				if _, err := ask(acme); err != nil {
					t.Errorf("once the first was written: %v", err)
				}
				second.Close()
				if _, err := ask(acme); err != nil {
					t.Errorf("once the second's connection is gone: %v", err)
				}
			})
		})
	}
}
