package e2e

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/rig"
)

func createSame() kmsg.Request {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 30_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "same", 2, 1
	req.Topics = append(req.Topics, topic)
	return req
}

func lookAtSame() kmsg.Request {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = 12, true
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("same")}}
	return req
}

func commitSame() kmsg.Request {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, "same", -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{
		Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{kmsg.NewOffsetCommitRequestTopicPartition()},
	}}
	return req
}

// While a call of one tenant is under way, another does the same under the same
// name: it waits for nothing of the first's, and is told nothing about it.
func TestTenantsDoTheSameMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name, route string // of the first tenant's call that is held
		request     func() kmsg.Request
	}{
		{"create beside a create", "/api/v1/configure", createSame},
		{"create between listing and create", "/api/v1/resources/queues", createSame},
		{"look at what is being made", "/api/v1/configure", lookAtSame},
		{"commit beside a commit", "/api/v1/kv", commitSame},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p *inject.Proxy
			r := rig.Start(t, rig.WithFaults(t, &p))
			makeTopic(t, r, rig.Acme, "t")
			makeTopic(t, r, rig.Globex, "t")
			first, second := r.Login(t, rig.Acme), r.Login(t, rig.Globex)
			for _, w := range []*rig.Wire{first, second} {
				w.Ask(commitSame()) // what a commit needs besides has been read
			}
			if err := second.SetDeadline(time.Now().Add(rig.Patience / 3)); err != nil {
				t.Fatal(err)
			}
			answered := make(chan kmsg.Response, 1)
			if err := p.Add(inject.Rule{Kind: inject.Watch, Route: c.route, Count: 1, Meanwhile: func() {
				defer close(answered)
				req := c.request()
				id := second.Send(req)
				if frame, err := second.ReadFrame(); err == nil {
					resp, _ := rig.Decode(req, id, frame)
					answered <- resp
				}
			}}); err != nil {
				t.Fatal(err)
			}
			own := first.Ask(c.request())
			other := <-answered
			if other == nil {
				t.Fatal("the other tenant was not answered")
			}
			for who, resp := range map[string]kmsg.Response{"the first": own, "the other": other} {
				for _, code := range rig.ErrorCodes(resp) {
					if code != 0 {
						t.Errorf("%s tenant's answer has code %d", who, code)
					}
				}
			}
		})
	}
}
