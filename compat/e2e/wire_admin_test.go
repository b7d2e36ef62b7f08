package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// Case E6: the one broker coordinates every group, at every version, batched
// since 4; what it does not coordinate is refused for good.
func TestWireFindCoordinator(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	row := wireRow(t, 10)
	for version := row.Min; version <= row.Max; version++ {
		for _, test := range []struct {
			what, key string
			kind      int8
			code      int16
		}{
			{"group", "g", 0, 0},
			{"group of 255 characters", strings.Repeat("ü", 255), 0, 0},
			{"empty group", "", 0, 24},
			{"group of 256 characters", strings.Repeat("g", 256), 0, 24},
			{"transaction", "t", 1, 0},
			{"type 7", "x", 7, 42},
			{"type -1", "x", -1, 42},
		} {
			if version == 0 && test.kind != 0 {
				continue // no types yet
			}
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.Version, req.CoordinatorType = version, test.kind
			req.CoordinatorKey, req.CoordinatorKeys = test.key, []string{test.key, "other", test.key}
			resp := w.Ask(req).(*kmsg.FindCoordinatorResponse)
			got := kmsg.FindCoordinatorResponseCoordinator{
				Key: test.key, ErrorCode: resp.ErrorCode, ErrorMessage: resp.ErrorMessage,
				NodeID: resp.NodeID, Host: resp.Host, Port: resp.Port,
			}
			if version >= 4 {
				if len(resp.Coordinators) != 3 {
					t.Fatalf("v%d, %s: %d answers, want one for each key", version, test.what, len(resp.Coordinators))
				}
				got = resp.Coordinators[0]
			}
			node, host := int32(0), rig.Host
			if test.code != 0 {
				node, host = -1, ""
			}
			if got.Key != test.key || got.ErrorCode != test.code || got.NodeID != node || got.Host != host || (got.Port == -1) != (test.code != 0) {
				t.Errorf("v%d, %s: %+v; want code %d", version, test.what, got, test.code)
			}
			if test.code != 0 && version >= 1 && got.ErrorMessage == nil {
				t.Errorf("v%d, %s: no message", version, test.what)
			}
		}
	}
}

// Case E7 (KIP-360): producer ids.
func TestWireInitProducerID(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	row := wireRow(t, 22)
	seen := map[int64]bool{0: true, -1: true, 7: true}
	for version := row.Min; version <= row.Max; version++ {
		ask := func(txn *string, id int64, epoch int16) *kmsg.InitProducerIDResponse {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch = version, txn, id, epoch
			return w.Ask(req).(*kmsg.InitProducerIDResponse)
		}
		fresh := func(what string, resp *kmsg.InitProducerIDResponse) {
			t.Helper()
			if resp.ErrorCode != 0 || seen[resp.ProducerID] || resp.ProducerID < 0 || resp.ProducerID >= 1<<62 || resp.ProducerEpoch != 0 {
				t.Errorf("v%d, %s: %+v, want a fresh id at epoch 0", version, what, resp)
			}
			seen[resp.ProducerID] = true
		}
		fresh("null", ask(nil, -1, -1))
		fresh("empty", ask(kmsg.StringPtr(""), -1, -1))
		if version < 3 {
			continue
		}
		for _, epoch := range []int16{0, 5, math.MaxInt16 - 1} {
			if resp := ask(nil, 7, epoch); resp.ErrorCode != 0 || resp.ProducerID != 7 || resp.ProducerEpoch != epoch+1 {
				t.Errorf("v%d, epoch %d: %+v, want the next", version, epoch, resp)
			}
		}
		fresh("last epoch", ask(nil, 7, math.MaxInt16))
		for _, half := range [][2]int64{{7, -1}, {-2, -1}, {-1, 0}, {-1, 5}} {
			if resp := ask(nil, half[0], int16(half[1])); resp.ErrorCode != 42 || resp.ProducerID != -1 || resp.ProducerEpoch != -1 {
				t.Errorf("v%d, id %d with epoch %d: %+v, want code 42", version, half[0], half[1], resp)
			}
		}
	}
}

// Case E8 (KIP-700, KIP-919): the cluster is one broker; controllers are no
// endpoint of it.
func TestWireDescribeCluster(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme)
	row := wireRow(t, 60)
	for version := row.Min; version <= row.Max; version++ {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.Version, req.IncludeClusterAuthorizedOperations, req.EndpointType = version, true, 1
		resp := w.Ask(req).(*kmsg.DescribeClusterResponse)
		if resp.ErrorCode != 0 || resp.ClusterID != "queen" || resp.ControllerID != 0 || len(resp.Brokers) != 1 ||
			resp.Brokers[0].NodeID != 0 || resp.Brokers[0].Host != rig.Host || resp.ClusterAuthorizedOperations != math.MinInt32 {
			t.Errorf("v%d: %+v", version, resp)
		}
		for endpoint, code := range map[int8]int16{0: 115, 2: 114, 9: 115, -1: 115} {
			if req.EndpointType = endpoint; version == 0 {
				continue
			}
			if resp := w.Ask(req).(*kmsg.DescribeClusterResponse); resp.ErrorCode != code || resp.ErrorMessage == nil {
				t.Errorf("v%d, endpoint type %d: %+v, want code %d", version, endpoint, resp, code)
			}
		}
	}
}

func wireTopicNames(resp *kmsg.MetadataResponse) (names []string) {
	for _, t := range resp.Topics {
		names = append(names, *t.Topic)
	}
	return names
}

// Case E9: which topics a Metadata request means, at every version.
func TestWireMetadataTopics(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("a", "b"))
	r.Login(t, rig.Globex).Ask(wireMetadata("theirs"))
	row := wireRow(t, 3)
	for version := row.Min; version <= row.Max; version++ {
		ask := func(topics []kmsg.MetadataRequestTopic) *kmsg.MetadataResponse {
			req := kmsg.NewPtrMetadataRequest()
			req.Version, req.Topics = version, topics
			return w.Ask(req).(*kmsg.MetadataResponse)
		}
		empty := ask([]kmsg.MetadataRequestTopic{})
		all := ask(nil)
		want := []string{"a", "b"}
		if got := wireTopicNames(all); !slices.Equal(got, want) {
			t.Errorf("v%d, null: topics %v, want %v", version, got, want)
		}
		if version > 0 {
			want = nil
		}
		if got := wireTopicNames(empty); !slices.Equal(got, want) {
			t.Errorf("v%d, empty: topics %v, want %v", version, got, want)
		}
		if len(all.Brokers) != 1 || all.Brokers[0].NodeID != 0 || version > 0 && all.ControllerID != 0 {
			t.Errorf("v%d: brokers %+v, controller %d", version, all.Brokers, all.ControllerID)
		}
		for _, topic := range all.Topics {
			if topic.ErrorCode != 0 || len(topic.Partitions) != 4 || topic.IsInternal {
				t.Errorf("v%d: %+v", version, topic)
			}
			for i, p := range topic.Partitions {
				if p.ErrorCode != 0 || p.Partition != int32(i) || p.Leader != 0 || p.LeaderEpoch != -1 || !slices.Equal(p.Replicas, []int32{0}) ||
					!slices.Equal(p.ISR, []int32{0}) || len(p.OfflineReplicas) != 0 {
					t.Errorf("v%d: %+v", version, p)
				}
			}
		}
	}
}

// Case E9: names twice are answered once, in their order; illegal names are 17,
// hidden ones 3; the flag is obeyed from version 4 on and taken as set below.
func TestWireMetadataNames(t *testing.T) {
	r := rig.Start(t)
	w := r.Login(t, rig.Acme)
	req := wireMetadata("b", "a", "b", "no blanks", "__x", "", "a", ".", strings.Repeat("t", 250))
	resp := w.Ask(req).(*kmsg.MetadataResponse)
	if got, want := wireTopicNames(resp), []string{"b", "a", "no blanks", "__x", "", ".", strings.Repeat("t", 250)}; !slices.Equal(got, want) {
		t.Errorf("topics %v, want %v", got, want)
	}
	for i, code := range []int16{0, 0, 17, 3, 17, 17, 17} {
		if got := resp.Topics[i]; got.ErrorCode != code || (code != 0) != (len(got.Partitions) == 0) {
			t.Errorf("%.20q: code %d with %d partitions, want %d", *got.Topic, got.ErrorCode, len(got.Partitions), code)
		}
	}

	row := wireRow(t, 3)
	all := wireMetadata()
	all.Topics = nil
	for version := row.Min; version <= row.Max; version++ {
		name := fmt.Sprint("v", version)
		req := wireMetadata(name)
		req.Version, req.AllowAutoTopicCreation = version, false
		code := w.Ask(req).(*kmsg.MetadataResponse).Topics[0].ErrorCode
		made := slices.Contains(wireTopicNames(w.Ask(all).(*kmsg.MetadataResponse)), name)
		if version < 4 && (code != 0 || !made) || version >= 4 && (code != 3 || made) {
			t.Errorf("v%d without leave to create: code %d, made %v", version, code, made)
		}
		if version < 4 {
			continue
		}
		if req.AllowAutoTopicCreation = true; w.Ask(req).(*kmsg.MetadataResponse).Topics[0].ErrorCode != 0 {
			t.Errorf("v%d: not created", version)
		}
	}
	if names := wireTopicNames(w.Ask(all).(*kmsg.MetadataResponse)); slices.ContainsFunc(names, func(s string) bool { return strings.HasPrefix(s, "__") }) {
		t.Errorf("hidden topics in %v", names)
	}
}

// Case E9: a null name is not a name before topic ids: the old shapes have no
// room for it, so it does not decode; from version 10 on it is 17.
func TestWireMetadataNullName(t *testing.T) {
	r := rig.Start(t)
	row := wireRow(t, 3)
	for version := row.Min; version <= row.Max; version++ {
		w := r.Login(t, rig.Acme)
		switch {
		case version >= 10:
			req := kmsg.NewPtrMetadataRequest()
			req.Version, req.Topics = version, []kmsg.MetadataRequestTopic{{}}
			if resp := w.Ask(req).(*kmsg.MetadataResponse); resp.Topics[0].ErrorCode != 17 {
				t.Errorf("v%d: code %d, want 17", version, resp.Topics[0].ErrorCode)
			}
		case version == 9:
			w.SendRaw(wireFrame(3, version, 1, nil, []byte{0}, []byte{2, 0, 0, 1, 0, 0, 0}))
			w.WantClosed()
		default:
			body := []byte{0, 0, 0, 1, 0xff, 0xff}
			if version >= 4 {
				body = append(body, 1) // the flag
			}
			if version >= 8 {
				body = append(body, 0, 0) // authorized operations
			}
			w.SendRaw(wireFrame(3, version, 1, nil, nil, body))
			w.WantClosed()
		}
	}
	wireCounted(t, r, wire.Malformed, int64(min(row.Max, 9)-row.Min+1))
}
