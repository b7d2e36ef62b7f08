package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// Case A1, A2: an unknown version of ApiVersions is answered in the shape of
// version 0, byte for byte, and the connection stays usable; before login and
// after it.
func TestWireApiVersionsUnknownVersion(t *testing.T) {
	r := rig.Start(t)
	own := wireRow(t, 18)
	for name, dial := range map[string]func() *rig.Wire{
		"before login": func() *rig.Wire { return r.Dial(t) },
		"after login":  func() *rig.Wire { return r.Login(t, rig.Acme) },
	} {
		t.Run(name, func(t *testing.T) {
			for i, version := range []int16{own.Max + 1, 99, math.MaxInt16, -1, math.MinInt16} {
				w, id := dial(), int32(0x01020304+i)
				w.SendRaw(wireFrame(18, version, id, []byte("new client"), []byte{0}, []byte("no shape we know")))
				got, err := w.ReadFrame()
				if err != nil {
					t.Fatalf("version %d: %v", version, err)
				}
				want := binary.BigEndian.AppendUint32(nil, uint32(id))
				want = append(want, 0, 35, 0, 0, 0, 1, 0, 18, 0, byte(own.Min), 0, byte(own.Max))
				if !bytes.Equal(got, want) {
					t.Errorf("version %d is answered\n% x\nwant\n% x", version, got, want)
				}
				wireAlive(t, w)
			}
		})
	}
}

// Case A3: the header of an ApiVersions answer is version 0 at every version:
// the whole answer is the body and the correlation id. The body is the table.
func TestWireApiVersionsIsTheTable(t *testing.T) {
	w := rig.Start(t).Dial(t)
	own := wireRow(t, 18)
	for version := own.Min; version <= own.Max; version++ {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = version
		req.ClientSoftwareName, req.ClientSoftwareVersion = "rig", "1"
		id := w.Send(req)
		b, err := w.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if got := int32(binary.BigEndian.Uint32(b)); got != id {
			t.Errorf("v%d: correlation id %d, want %d", version, got, id)
		}
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.Version = version
		if err := resp.ReadFrom(b[4:]); err != nil {
			t.Fatalf("v%d: %v", version, err)
		}
		if again := resp.AppendTo(nil); len(again)+4 != len(b) {
			t.Errorf("v%d: %d bytes, want a body of %d and 4", version, len(b), len(again))
		}
		var got, want []string
		for _, k := range resp.ApiKeys {
			got = append(got, fmt.Sprint(k.ApiKey, k.MinVersion, k.MaxVersion))
		}
		for _, row := range api.Table() {
			want = append(want, fmt.Sprint(row.Key, row.Min, row.Max))
		}
		if !slices.Equal(got, want) {
			t.Errorf("v%d announces %v, want %v", version, got, want)
		}
		if resp.ErrorCode != 0 || len(resp.SupportedFeatures) != 0 || len(resp.FinalizedFeatures) != 0 {
			t.Errorf("v%d: code %d, features %v %v", version, resp.ErrorCode, resp.SupportedFeatures, resp.FinalizedFeatures)
		}
	}
}

// KIP-511: what a client calls itself and its version has letters, digits, dots
// and dashes, and a letter or digit at both ends; everything else is 42.
func TestWireApiVersionsSoftware(t *testing.T) {
	w := rig.Start(t).Login(t, rig.Acme) // a stranger may not ask this often
	own := wireRow(t, 18)
	for text, code := range map[string]int16{
		"a": 0, "apache-kafka-java": 0, "2.13-rc1": 0, "a--b..c": 0, "A1": 0,
		"": 42, "-": 42, ".": 42, "a-": 42, "-a": 42, "a.": 42, "a b": 42, "a_b": 42, "a/b": 42, "ä": 42, "a\n": 42, "a\x00": 42,
	} {
		for version := own.Min; version <= own.Max; version++ {
			for _, pair := range [][2]string{{text, "1"}, {"rig", text}} {
				req := kmsg.NewPtrApiVersionsRequest()
				req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = version, pair[0], pair[1]
				resp := w.Ask(req).(*kmsg.ApiVersionsResponse)
				want := code
				if version < 3 {
					want = 0 // it does not say
				}
				if resp.ErrorCode != want || (len(resp.ApiKeys) == 0) != (want != 0) {
					t.Errorf("v%d, %q: code %d with %d keys, want code %d", version, pair, resp.ErrorCode, len(resp.ApiKeys), want)
				}
			}
		}
	}
}

// wireSample is a plain request of an API that is answered at every version.
func wireSample(key, version int16) kmsg.Request {
	req := kmsg.RequestForKey(key)
	switch req := req.(type) {
	case *kmsg.ProduceRequest:
		*req = *wireProduce(1, "versions", 0, wireBatch{values: []string{"v"}}.bytes())
	case *kmsg.FetchRequest:
		*req = *wireFetch("versions", 0, 0)
	case *kmsg.ListOffsetsRequest:
		*req = *wireListRequest("versions", 0, -1)
	case *kmsg.MetadataRequest:
		*req = *wireMetadata("versions")
	case *kmsg.OffsetCommitRequest:
		*req = *commitRequest(version, "g", at{topic: "versions", offset: 1})
	case *kmsg.OffsetFetchRequest:
		*req = *offsetRequest(version, "g", "versions")
	case *kmsg.OffsetDeleteRequest:
		req.Group = "g" // committed above
	case *kmsg.FindCoordinatorRequest:
		req.CoordinatorKey, req.CoordinatorKeys = "g", []string{"g", "h"}
	case *kmsg.JoinGroupRequest:
		*req = *joinReq(fmt.Sprint("versions-", version), "", "")
	case *kmsg.HeartbeatRequest:
		req.Group, req.MemberID = "versions", "nobody"
	case *kmsg.LeaveGroupRequest:
		req.Group, req.MemberID = "versions", "nobody"
		req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: "nobody"}}
	case *kmsg.SyncGroupRequest:
		*req = *syncReq("versions", "nobody", 1)
	case *kmsg.DescribeGroupsRequest:
		req.Groups = []string{"nobodys"}
	case *kmsg.AddOffsetsToTxnRequest:
		req.TransactionalID, req.Group = "nobody's", "g"
	case *kmsg.EndTxnRequest:
		req.TransactionalID = "nobody's" // an abort of nothing
	case *kmsg.TxnOffsetCommitRequest:
		req.TransactionalID, req.Group = "nobody's", "g"
	case *kmsg.CreateTopicsRequest:
		req.Topics = []kmsg.CreateTopicsRequestTopic{adminTopic(fmt.Sprintf("made-%d", version), 3, "retention.ms=5000"), adminTopic(fmt.Sprintf("kept-%d", version), 3)}
	case *kmsg.DeleteTopicsRequest:
		if version < 6 {
			req.TopicNames = []string{fmt.Sprintf("made-%d", version+1)}
		}
	case *kmsg.CreatePartitionsRequest:
		req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "kept-6", Count: int32(10 + version)}}
	case *kmsg.DescribeConfigsRequest:
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: "kept-6"}, {ResourceType: 4}}
	case *kmsg.AlterConfigsRequest:
		req.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: 2, ResourceName: "kept-6"}}
	case *kmsg.IncrementalAlterConfigsRequest:
		*req = *adminChangeRequest("kept-6", "set retention.ms=7000")
	case *kmsg.DescribeTopicPartitionsRequest:
		req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "versions"}}
	case *kmsg.ApiVersionsRequest:
		req.ClientSoftwareName, req.ClientSoftwareVersion = "rig", "1"
	case *kmsg.DescribeClusterRequest:
		req.EndpointType = 1
	}
	req.SetVersion(version)
	return req
}

// wireSampleCode is what a sample is answered; most are answered without an
// error.
func wireSampleCode(row api.Row, version int16) int16 {
	switch {
	case row.Phase == api.BeforeLogin && row.Key != 18:
		return 34
	case row.Key == 29: // there is no authoriser
		return 54
	case row.Key == 11 && version >= 4:
		return 79
	case row.Key == 12, row.Key == 13, row.Key == 14:
		return 25
	case row.Key == 15 && version >= 6:
		return 69
	case row.Key == 25:
		return 49 // the transactional id is nobody's
	}
	return 0
}

// Case A4: every announced version decodes and answers in its own shape.
func TestWireEveryVersionAnswers(t *testing.T) {
	r := rig.Start(t, noJoinDelay)
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("versions"))
	for _, row := range api.Table() {
		for version := row.Min; version <= row.Max; version++ {
			req := wireSample(row.Key, version)
			wireIdentify(w, req)
			resp := w.Ask(req)
			for _, code := range rig.ErrorCodes(resp) {
				if want := wireSampleCode(row, version); code != 0 && code != want {
					t.Errorf("%s v%d answers code %d, want %d", row.Name, version, code, want)
				}
			}
		}
	}
}

// Case A4: every other version closes the connection.
func TestWireOtherVersionsClose(t *testing.T) {
	r := rig.Start(t)
	n := int64(0)
	for _, row := range api.Table() {
		if row.Key == 18 {
			continue // always answered
		}
		for _, version := range []int16{row.Min - 1, row.Max + 1, math.MaxInt16, -1} {
			w := r.Login(t, rig.Acme)
			w.SendRaw(wireFrame(row.Key, version, 1, nil, nil, make([]byte, 64)))
			w.WantClosed()
			n++
		}
	}
	wireCounted(t, r, wire.UnknownVersion, n)
	for i, key := range []int16{-1, math.MinInt16, math.MaxInt16, 4, 7, 27, 68} {
		w := r.Login(t, rig.Acme)
		w.SendRaw(wireFrame(key, 0, 1, nil, nil, make([]byte, 64)))
		w.WantClosed()
		wireCounted(t, r, wire.UnknownAPI, int64(i+1))
	}
}
