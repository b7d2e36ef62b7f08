package noninterference

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// producer is the client's idempotent producer.
type producer struct {
	ready bool
	id    int64
	epoch int16
	next  [2]int32 // sequence by topic
}

// session is the client's fetch session, of its connection.
type session struct {
	id, epoch int32
	version   int16
}

func recordOps() []op {
	return []op{
		{"produce", (*client).produce},
		{"produce-idempotent", (*client).produceIdempotent},
		{"fetch", (*client).fetch},
		{"fetch-session", (*client).fetchSession},
		{"list-offsets", (*client).listOffsets},
		{"init-producer", (*client).initProducer},
		{"describe-producers", (*client).describeProducers},
	}
}

// sentAt is the time that records carry, whenever they are sent.
func sentAt(x int) time.Time { return time.UnixMilli(1_700_000_000_000 + int64(x)) }

// produceTo asks for a batch to be stored in a topic.
func (c *client) produceTo(x, v int, p rig.Producer, txnID *string, floor int16, values ...string) int16 {
	t := c.topic(x)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.TransactionID = -1, 30_000, txnID
	req.Topics = []kmsg.ProduceRequestTopic{{
		Topic: topicName(x), TopicID: t.id,
		Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: int32(x / 2 % firstWidth), Records: rig.Batch(sentAt(x), p, values...)}},
	}}
	if p.ID >= 0 {
		req.Topics[0].Partitions[0].Partition = 0
	}
	c.version(req, v, floor)
	resp, ok := c.ask(req).(*kmsg.ProduceResponse)
	if !ok {
		return -1
	}
	return resp.Topics[0].Partitions[0].ErrorCode
}

func (c *client) produce(x, v int) {
	c.produceTo(x, v, rig.NoProducer(), nil, 0, fmt.Sprint("plain ", x), fmt.Sprint("at v", v))
}

func (c *client) initProducer(x, v int) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionTimeoutMillis = 60_000
	resp, ok := askAt[*kmsg.InitProducerIDResponse](c, req, v)
	if ok && resp.ErrorCode == 0 {
		c.producer = producer{ready: true, id: resp.ProducerID, epoch: resp.ProducerEpoch}
	}
}

// produceIdempotent sends the next batch of its producer, or the last once more.
func (c *client) produceIdempotent(x, v int) {
	if !c.producer.ready {
		c.initProducer(x, v)
	}
	p := &c.producer
	seq := p.next[x%2]
	if x/2%4 == 3 && seq > 0 {
		seq--
	}
	value := fmt.Sprintf("%s-%d", topicName(x), seq)
	const batches = 3 // magic 2 begins there
	code := c.produceTo(x, v, rig.Producer{ID: p.id, Epoch: p.epoch, Seq: seq}, nil, batches, value)
	switch {
	case code == 0:
		p.next[x%2] = seq + 1
	case code > 0:
		p.ready = false // as a client does that cannot go on
	}
}

func (c *client) fetchOf(x int) *kmsg.FetchRequest {
	t := c.topic(x)
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 1, 1<<20, -1
	req.IsolationLevel = int8(x / 2 % 2)
	topic := kmsg.FetchRequestTopic{Topic: topicName(x), TopicID: t.id}
	for n := range int32(firstWidth) {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.PartitionMaxBytes, p.CurrentLeaderEpoch = n, 1<<20, -1
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	return req
}

func (c *client) fetch(x, v int) {
	req := c.fetchOf(x)
	c.send(req, v)
}

// fetchSession begins a session or goes on with it.
func (c *client) fetchSession(x, v int) {
	const sessions = 7
	req := c.fetchOf(x)
	c.version(req, v, sessions)
	if c.session.id == 0 || x/4%4 == 3 {
		req.SessionID, req.SessionEpoch = c.session.id, 0
		c.session = session{version: req.Version}
	} else {
		req.Version = c.session.version
		req.SessionID, req.SessionEpoch, req.Topics = c.session.id, c.session.epoch, nil
	}
	resp, ok := c.ask(req).(*kmsg.FetchResponse)
	switch {
	case !ok:
	case resp.ErrorCode != 0 || resp.SessionID == 0:
		c.session = session{}
	default:
		c.session.id, c.session.epoch = resp.SessionID, c.session.epoch+1
	}
}

func (c *client) listOffsets(x, v int) {
	c.topic(x)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	c.version(req, v)
	times := []int64{-1, -2, sentAt(0).UnixMilli()}
	if req.Version >= 7 {
		times = append(times, -3)
	}
	if req.Version >= 8 {
		times = append(times, -4)
	}
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.CurrentLeaderEpoch, p.Timestamp = -1, times[x/2%len(times)]
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topicName(x), Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	c.ask(req)
}

func (c *client) describeProducers(x, v int) {
	c.topic(x)
	req := kmsg.NewPtrDescribeProducersRequest()
	req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topicName(x), Partitions: []int32{0, 1}}}
	c.send(req, v)
}
