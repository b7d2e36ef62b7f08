package e2e

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/rig"
)

func TestProduceAndConsume(t *testing.T) {
	r := rig.Start(t)
	ctx := rig.Context(t)
	p := r.Kafka(t, rig.Acme)
	if err := p.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c := r.Kafka(t, rig.Consume, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if got := c.PollFetches(ctx).Records(); len(got) != 1 || string(got[0].Value) != "v" {
		t.Fatalf("got %d records", len(got))
	}
}
