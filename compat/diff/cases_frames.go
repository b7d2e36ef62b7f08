package main

import (
	"bytes"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/api"
)

// frames are requests that are wrong before any API looks at them.
func (s *suite) frames() {
	none := api.Row{Name: "Frame"}
	s.add(none, 0, "unknown key 9999", step{edit: instead(raw(9999, 0, 1, []byte("diff"), nil, nil))})
	s.add(none, 0, "unknown key -1", step{edit: instead(raw(-1, 0, 1, []byte("diff"), nil, nil))})
	s.add(none, 0, "no content", step{edit: instead(sized(make([]byte, 4)))})
	s.add(none, 0, "three bytes", step{edit: instead(sized(make([]byte, 7)))})
	s.add(none, 0, "key and version only", step{edit: instead(sized([]byte{0, 0, 0, 0, 0, 18, 0, 0}))})
	s.add(none, 0, "no client id field", step{edit: instead(sized([]byte{0, 0, 0, 0, 0, 18, 0, 0, 0, 0, 0, 1}))})
	s.add(none, 0, "a negative length", step{edit: instead([]byte{0xff, 0xff, 0xff, 0xff})})
	s.add(none, 0, "a length of 128 MiB", step{edit: instead([]byte{8, 0, 0, 0})})
	for _, row := range s.rows {
		for _, v := range []int16{-1, 99} {
			if row.Key != apiVersionsKey {
				s.add(row, v, "a version that nobody has", step{edit: instead(raw(row.Key, v, 1, []byte("diff"), []byte{0}, nil))})
			}
		}
		for _, v := range every(row) {
			s.framesOf(row, v)
		}
	}
}

// framesOf are good requests of an API in bad frames.
func (s *suite) framesOf(row api.Row, v int16) {
	req := func() kmsg.Request { return s.plain(row, v) }
	var tags []byte
	if req().IsFlexible() {
		tags = []byte{0}
	}
	with := func(clientID, tags []byte) func([]byte) []byte {
		return func([]byte) []byte { return raw(row.Key, v, 1, clientID, tags, req().AppendTo(nil)) }
	}
	s.add(row, v, "one byte more", step{req: req(), edit: more(0)})
	s.add(row, v, "a hundred bytes more", step{req: req(), edit: more(make([]byte, 100)...)})
	s.add(row, v, "one byte less", step{req: req(), edit: less(1)})
	s.add(row, v, "no body", step{req: req(), edit: body()})
	s.add(row, v, "null client id", step{req: req(), edit: with(nil, tags)})
	s.add(row, v, "empty client id", step{req: req(), edit: with([]byte{}, tags)})
	s.add(row, v, "client id that is not UTF-8", step{req: req(), edit: with([]byte{0xff, 0xfe}, tags)})
	s.add(row, v, "client id of 20000 bytes", step{req: req(), edit: with(bytes.Repeat([]byte("c"), 20000), tags)})
	if tags == nil {
		return
	}
	s.add(row, v, "unknown tag in the header", step{req: req(), edit: with([]byte("diff"), []byte{1, 99, 2, 7, 7})})
	s.add(row, v, "header tags that are cut", step{req: req(), edit: instead(raw(row.Key, v, 1, []byte("diff"), []byte{5, 99}, nil))})
	s.add(row, v, "unknown tag in the body", step{req: req(), edit: func([]byte) []byte {
		b := req().AppendTo(nil)
		return raw(row.Key, v, 1, []byte("diff"), tags, append(b[:len(b)-1], 1, 99, 2, 7, 7))
	}})
	s.add(row, v, "a tag twice in the body", step{req: req(), edit: func([]byte) []byte {
		b := req().AppendTo(nil)
		return raw(row.Key, v, 1, []byte("diff"), tags, append(b[:len(b)-1], 2, 99, 1, 7, 99, 1, 7))
	}})
}

// plain is a good request of an API that writes nothing.
func (s *suite) plain(row api.Row, v int16) kmsg.Request {
	var req kmsg.Request
	switch row.Key {
	case 0:
		req = produceOf(-1)
	case 1:
		req = fetchOf(readAt(readTopic, 2, 0))
	case 2:
		req = listOf(timeOf(readTopic, 0, -1))
	case 3:
		req = metadataOf(false, readTopic)
	case 8:
		req = commitOf("group")
	case 9:
		req = offsetsOf("group", readTopic)
	case 14:
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Group, sync.MemberID, sync.ProtocolType, sync.Protocol = "group", "m", pointer("consumer"), pointer("range")
		req = sync
	case 10:
		req = coordinatorOf(0, "group")
	case 17:
		req = &kmsg.SASLHandshakeRequest{Mechanism: "PLAIN"}
	case apiVersionsKey:
		req = softwareOf("diff", "1.0")
	case 22:
		req = kmsg.NewPtrInitProducerIDRequest()
	case 25:
		req = &kmsg.AddOffsetsToTxnRequest{TransactionalID: "txn", Group: "group"}
	case 26:
		req = &kmsg.EndTxnRequest{TransactionalID: "txn", Commit: true}
	case 29:
		req = &kmsg.DescribeACLsRequest{ResourceType: 1, ResourcePatternType: 1, Operation: 1, PermissionType: 1} // any
	case 35:
		req = &kmsg.DescribeLogDirsRequest{Topics: []kmsg.DescribeLogDirsRequestTopic{}}
	case 74:
		req = &kmsg.ListConfigResourcesRequest{ResourceTypes: []int8{16}} // client metrics
	case 75:
		topics := kmsg.NewPtrDescribeTopicPartitionsRequest()
		topics.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: readTopic}}
		req = topics
	default:
		req = kmsg.RequestForKey(row.Key)
	}
	req.SetVersion(v)
	if f, ok := req.(*kmsg.FindCoordinatorRequest); ok && v >= 4 {
		f.CoordinatorKeys = []string{"group"}
	}
	return req
}

func (s *suite) apiVersions() {
	row := s.row(apiVersionsKey)
	for _, v := range every(row) {
		s.add(row, v, "good", ask(softwareOf("diff", "1.0"), softwareOf("diff", "1.0"))...)
	}
	for _, v := range []int16{6, 99, 32767, -1, -32768} {
		s.add(row, v, "a version that nobody has", step{
			req:  softwareOf("diff", "1.0"),
			edit: instead(raw(row.Key, v, 1, []byte("diff"), []byte{0}, []byte{5, 'd', 'i', 'f', 'f', 2, '1', 0})),
		})
	}
	for _, v := range []int16{3, row.Max} {
		for _, name := range []string{
			"", " ", "-", ".", "a", "a-", "-a", "a.", "a b", "a_b", "ä", "a/b", "a\n", "a\x00", "A.b-9", "apache-kafka-java",
			strings.Repeat("n", 300),
		} {
			s.add(row, v, "software name "+short(name), ask(softwareOf(name, "1.0"))...)
			s.add(row, v, "software version "+short(name), ask(softwareOf("diff", name))...)
		}
		s.add(row, v, "null software name", step{req: softwareOf("", ""), edit: body(0, 2, '1', 0)})
	}
}

func softwareOf(name, version string) *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = name, version
	return req
}

// sasl compares what a listener without SASL says.
func (s *suite) sasl() {
	handshake, authenticate := s.row(17), s.row(36)
	for _, v := range every(handshake) {
		for _, m := range []string{"PLAIN", "plain", "SCRAM-SHA-256", "GSSAPI", ""} {
			s.add(handshake, v, "mechanism "+m, ask(&kmsg.SASLHandshakeRequest{Mechanism: m})...)
		}
		s.add(handshake, v, "null mechanism", step{req: &kmsg.SASLHandshakeRequest{}, edit: body(0xff, 0xff)})
	}
	for _, v := range every(authenticate) {
		for _, b := range []string{"", "\x00user\x00password", "password"} {
			s.add(authenticate, v, "bytes "+strings.ReplaceAll(b, "\x00", "."), ask(&kmsg.SASLAuthenticateRequest{SASLAuthBytes: []byte(b)})...)
		}
		null := body(0xff, 0xff, 0xff, 0xff)
		if v >= 2 {
			null = body(0, 0)
		}
		s.add(authenticate, v, "null bytes", step{req: &kmsg.SASLAuthenticateRequest{}, edit: null})
	}
}

func (s *suite) findCoordinator() {
	row := s.row(10)
	long := strings.Repeat("g", 256)
	for _, v := range every(row) {
		for _, c := range []struct {
			name string
			kind int8
			keys []string
		}{
			{"a group", 0, []string{"group"}},
			{"an empty group id", 0, []string{""}},
			{"a group id of 255", 0, []string{long[:255]}},
			{"a group id of 256", 0, []string{long}},
			{"a group id with spaces", 0, []string{" a group "}},
			{"a group id of other letters", 0, []string{"gruppe-ä-群"}},
			{"a transactional id", 1, []string{"txn"}},
			{"an empty transactional id", 1, []string{""}},
			{"a share group", 2, []string{"group:AAAAAAAAAAAAAAAAAAAAAA:0"}},
			{"key type 3", 3, []string{"group"}},
			{"key type -1", -1, []string{"group"}},
			{"key type 127", 127, []string{"group"}},
			{"batched", 0, []string{"a", "b", "c"}},
			{"batched, one bad", 0, []string{"a", "", "c"}},
			{"batched, twice the same", 0, []string{"a", "b", "a"}},
			{"batched, none", 0, []string{}},
			{"batched, none, key type 3", 3, []string{}},
		} {
			if v < 4 && len(c.keys) != 1 || v < 1 && c.kind != 0 {
				continue
			}
			s.add(row, v, c.name, ask(coordinatorOf(c.kind, c.keys...))...)
		}
		switch {
		case v >= 4:
			s.add(row, v, "null keys", step{req: coordinatorOf(0), edit: body(0, 0, 0)})
		case v == 3:
			s.add(row, v, "null key", step{req: coordinatorOf(0), edit: body(0, 0, 0)})
		default:
			s.add(row, v, "null key", step{req: coordinatorOf(0), edit: body([]byte{0xff, 0xff, 0}[:2+min(v, 1)]...)})
		}
	}
}

func coordinatorOf(kind int8, keys ...string) *kmsg.FindCoordinatorRequest {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType, req.CoordinatorKeys = kind, keys
	if len(keys) > 0 {
		req.CoordinatorKey = keys[0]
	}
	return req
}

func (s *suite) initProducerID() {
	row := s.row(22)
	init := func(id *string, timeout int32, producer int64, epoch int16) []step {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = id, timeout, producer, epoch
		return ask(req)
	}
	txn, empty := "txn", ""
	for _, v := range every(row) {
		s.add(row, v, "fresh", init(nil, 60000, -1, -1)...)
		s.add(row, v, "fresh, timeout 0", init(nil, 0, -1, -1)...)
		s.add(row, v, "fresh, timeout -1", init(nil, -1, -1, -1)...)
		s.add(row, v, "fresh, timeout huge", init(nil, 1<<31-1, -1, -1)...)
		s.add(row, v, "empty transactional id", init(&empty, 60000, -1, -1)...)
		s.add(row, v, "transactional id", init(&txn, 60000, -1, -1)...)
		if v < 3 {
			continue
		}
		s.add(row, v, "bump", init(nil, 60000, 5, 3)...)
		s.add(row, v, "bump of the last epoch", init(nil, 60000, 5, 32767)...)
		s.add(row, v, "bump of epoch 0", init(nil, 60000, 5, 0)...)
		s.add(row, v, "an id without an epoch", init(nil, 60000, 5, -1)...)
		s.add(row, v, "an epoch without an id", init(nil, 60000, -1, 5)...)
		s.add(row, v, "id -2", init(nil, 60000, -2, -1)...)
		s.add(row, v, "id -2 and epoch", init(nil, 60000, -2, 4)...)
		s.add(row, v, "epoch -2", init(nil, 60000, 5, -2)...)
	}
}

func (s *suite) describeCluster() {
	row := s.row(60)
	for _, v := range every(row) {
		for _, operations := range []bool{false, true} {
			for _, endpoint := range []int8{1, 2, 0, 3, -1} {
				if v < 1 && endpoint != 1 {
					continue
				}
				for _, fenced := range []bool{false, true} {
					if v < 2 && fenced {
						continue
					}
					req := kmsg.NewPtrDescribeClusterRequest()
					req.IncludeClusterAuthorizedOperations, req.EndpointType, req.IncludeFencedBrokers = operations, endpoint, fenced
					name := map[int8]string{1: "brokers", 2: "controllers"}[endpoint]
					if name == "" {
						name = "endpoint type " + string(rune('0'+max(endpoint, 0)))
					}
					if operations {
						name += ", operations"
					}
					if fenced {
						name += ", fenced"
					}
					s.add(row, v, name, ask(req)...)
				}
			}
		}
	}
}
