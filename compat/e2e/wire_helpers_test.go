package e2e

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/wire"
)

// wireBatch is a record batch of magic 2, field by field, so that a test can
// make what no client would. The zero value has no producer and no records.
type wireBatch struct {
	attributes int16
	timestamp  int64
	producer   int64 // 0: none
	epoch      int16
	sequence   int32
	values     []string
}

func (b wireBatch) bytes() []byte {
	raw := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: b.attributes,
		LastOffsetDelta: int32(len(b.values)) - 1, FirstTimestamp: b.timestamp, MaxTimestamp: b.timestamp,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(len(b.values)),
	}
	if b.producer != 0 {
		raw.ProducerID, raw.ProducerEpoch, raw.FirstSequence = b.producer, b.epoch, b.sequence
	}
	for i, v := range b.values {
		body := []byte{0, 0}                            // attributes, timestamp delta
		body = binary.AppendVarint(body, int64(i))      // offset delta
		body = binary.AppendVarint(body, -1)            // null key
		body = binary.AppendVarint(body, int64(len(v))) // value
		body = append(append(body, v...), 0)            // no headers
		raw.Records = binary.AppendVarint(raw.Records, int64(len(body)))
		raw.Records = append(raw.Records, body...)
	}
	return wireSeal(raw.AppendTo(nil))
}

// wireSeal makes length and CRC of a batch true.
func wireSeal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// wireProduce is a Produce request of one partition.
func wireProduce(acks int16, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.ProduceRequestTopicPartition{p}
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, acks, 5000
	req.Topics = []kmsg.ProduceRequestTopic{t}
	return req
}

// wireStore produces to a partition and returns its answer.
func wireStore(w *rig.Wire, topic string, partition int32, b wireBatch) kmsg.ProduceResponseTopicPartition {
	resp := w.Ask(wireProduce(-1, topic, partition, b.bytes())).(*kmsg.ProduceResponse)
	return resp.Topics[0].Partitions[0]
}

// wireMustStore fails the test unless the batch is stored; it returns the base
// offset.
func wireMustStore(tb testing.TB, w *rig.Wire, topic string, partition int32, b wireBatch) int64 {
	tb.Helper()
	p := wireStore(w, topic, partition, b)
	if p.ErrorCode != 0 {
		tb.Fatalf("produce to %s/%d: code %d", topic, partition, p.ErrorCode)
	}
	return p.BaseOffset
}

// wireFetch is a Fetch request of one partition that does not wait.
func wireFetch(topic string, partition int32, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.MinBytes = 12, 1<<20, 0
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.FetchRequestTopicPartition{wireFetchPart(partition, offset)}
	req.Topics = []kmsg.FetchRequestTopic{t}
	return req
}

func wireFetchPart(partition int32, offset int64) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	return p
}

// wireRead fetches a partition and returns its answer.
func wireRead(w *rig.Wire, topic string, partition int32, offset int64) kmsg.FetchResponseTopicPartition {
	return w.Ask(wireFetch(topic, partition, offset)).(*kmsg.FetchResponse).Topics[0].Partitions[0]
}

// wireEnd is a partition's high watermark.
func wireEnd(tb testing.TB, w *rig.Wire, topic string, partition int32) int64 {
	tb.Helper()
	p := wireList(w, topic, partition, -1)
	if p.ErrorCode != 0 {
		tb.Fatalf("list offsets of %s/%d: code %d", topic, partition, p.ErrorCode)
	}
	return p.Offset
}

func wireList(w *rig.Wire, topic string, partition int32, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	req := wireListRequest(topic, partition, timestamp)
	return w.Ask(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
}

func wireListRequest(topic string, partition int32, timestamp int64) *kmsg.ListOffsetsRequest {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, timestamp
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.ListOffsetsRequestTopicPartition{p}
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.Topics = 4, []kmsg.ListOffsetsRequestTopic{t}
	return req
}

// wireMetadata asks for topics by name, creating what is missing.
func wireMetadata(names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = 9, true
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	return req
}

// wireIdentify puts the ids of topics into a request that names them by id at
// its version. A topic that is not there keeps the zero id.
func wireIdentify(w *rig.Wire, req kmsg.Request) {
	switch req := req.(type) {
	case *kmsg.ProduceRequest:
		for i := range req.Topics {
			if t := &req.Topics[i]; req.Version >= 13 {
				t.TopicID = wireTopicID(w, t.Topic)
			}
		}
	case *kmsg.FetchRequest:
		for i := range req.Topics {
			if t := &req.Topics[i]; req.Version >= 13 {
				t.TopicID = wireTopicID(w, t.Topic)
			}
		}
	case *kmsg.OffsetCommitRequest:
		for i := range req.Topics {
			if t := &req.Topics[i]; req.Version >= 10 {
				t.TopicID = wireTopicID(w, t.Topic)
			}
		}
	case *kmsg.OffsetFetchRequest:
		for i := range req.Groups {
			for j := range req.Groups[i].Topics {
				if t := &req.Groups[i].Topics[j]; req.Version >= 10 {
					t.TopicID = wireTopicID(w, t.Topic)
				}
			}
		}
	}
}

// wireTopicID asks for a topic's id.
func wireTopicID(w *rig.Wire, name string) [16]byte {
	req := wireMetadata(name)
	req.Version, req.AllowAutoTopicCreation = 12, false
	return w.Ask(req).(*kmsg.MetadataResponse).Topics[0].TopicID
}

// wireAlive checks that a connection still answers.
func wireAlive(tb testing.TB, w *rig.Wire) {
	tb.Helper()
	resp := w.Ask(kmsg.NewPtrApiVersionsRequest()).(*kmsg.ApiVersionsResponse)
	if resp.ErrorCode != 0 {
		tb.Fatalf("ApiVersions answers code %d", resp.ErrorCode)
	}
}

// wireFrame is a request frame by hand: its length, a header with any client id
// (nil is null) and any tags section (nil: not a flexible header), a body.
func wireFrame(key, version int16, id int32, clientID, tags, body []byte) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 4), uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	n := len(clientID)
	if clientID == nil {
		n = -1
	}
	b = binary.BigEndian.AppendUint16(b, uint16(int16(n)))
	b = append(append(append(b, clientID...), tags...), body...)
	return wireSized(b)
}

// wireSized makes the length prefix of a frame true.
func wireSized(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// wirePadded is the frame of a flexible request, grown to size bytes of content
// by an unknown tag in its header.
func wirePadded(req kmsg.Request, id int32, size int) []byte {
	body := req.AppendTo(nil)
	tag := size - len(wireFrame(0, 0, 0, nil, []byte{1, 99}, body)) + 4
	length := binary.AppendUvarint(nil, uint64(tag))
	length = binary.AppendUvarint(nil, uint64(tag-len(length)))
	tags := append([]byte{1, 99}, length...)
	tags = append(tags, make([]byte, tag-len(length))...)
	return wireFrame(req.Key(), req.GetVersion(), id, nil, tags, body)
}

// wireRow is an API of the table.
func wireRow(tb testing.TB, key int16) api.Row {
	tb.Helper()
	for _, row := range api.Table() {
		if row.Key == key {
			return row
		}
	}
	tb.Fatalf("key %d is not in the table", key)
	return api.Row{}
}

// wireCounted waits until a number of connections have ended for a reason.
func wireCounted(tb testing.TB, r *rig.Rig, reason wire.Reason, n int64) {
	tb.Helper()
	rig.Eventually(tb, reason.String()+" is counted", func() bool { return r.Gateway.Closed(reason) >= n })
	if got := r.Gateway.Closed(reason); got != n {
		tb.Errorf("%d connections ended as %s, want %d", got, reason, n)
	}
}

// wireRelay stands between gateway and cell. It lets requests pass until it is
// told to cut them, or to hold those of one path.
type wireRelay struct {
	cut  atomic.Bool
	hold atomic.Pointer[wireHold]
}

// wireHold keeps the requests of one path until released.
type wireHold struct {
	path    string
	reached chan struct{} // one for each request that is kept
	release chan struct{}
}

// holding starts to keep the requests to a path.
func (p *wireRelay) holding(path string) *wireHold {
	h := &wireHold{path: path, reached: make(chan struct{}, 100), release: make(chan struct{})}
	p.hold.Store(h)
	return h
}

// at is Options.CellAt for the relay.
func (p *wireRelay) at(tb testing.TB) func(string) string {
	return func(cell string) string {
		target, err := url.Parse(cell)
		if err != nil {
			tb.Fatal(err)
		}
		forward := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host
			},
			ErrorLog: log.New(io.Discard, "", 0), // requests that were given up
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if p.cut.Load() {
				panic(http.ErrAbortHandler) // ends the connection without an answer
			}
			if h := p.hold.Load(); h != nil && strings.HasPrefix(req.URL.Path, h.path) {
				h.reached <- struct{}{}
				<-h.release
			}
			forward.ServeHTTP(w, req)
		}))
		tb.Cleanup(s.Close)
		return s.URL
	}
}
