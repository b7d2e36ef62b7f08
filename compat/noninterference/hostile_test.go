package noninterference

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// hostile is what only A does, and only where it is hostile: frames that are
// none, ids that are B's, and as much of everything as it can get.
func hostile() []op {
	return []op{
		{"bad-frame", (*client).badFrame},
		{"cut-body", (*client).cutBody},
		{"no-such-api", (*client).noSuchAPI},
		{"wrong-token", (*client).wrongToken},
		{"theirs-fetch", (*client).theirsFetch},
		{"theirs-session", (*client).theirsSession},
		{"theirs-produce", (*client).theirsProduce},
		{"theirs-delete-topic", (*client).theirsDeleteTopic},
		{"theirs-commit", (*client).theirsCommit},
		{"theirs-member", (*client).theirsMember},
		{"theirs-producer", (*client).theirsProducer},
		{"theirs-txn", (*client).theirsTxn},
		{"hoard-connections", (*client).hoardConnections},
		{"hoard-groups", (*client).hoardGroups},
		{"hoard-txns", (*client).hoardTxns},
		{"hoard-producers", (*client).hoardProducers},
		{"hoard-sessions", (*client).hoardSessions},
		{"hoard-commits", (*client).hoardCommits},
		{"hoard-topics", (*client).hoardTopics},
	}
}

// raw sends bytes and reads whatever comes back, if anything has to.
func (c *client) raw(frame []byte) {
	if c.link == nil && !c.login(1) {
		return
	}
	c.link.wait()
	if _, err := c.link.Write(frame); err == nil {
		_, err = rig.ReadFrame(c.link)
		if err == nil {
			return
		}
	}
	c.leave()
}

// badFrame sends a length that no frame has, or a frame that is noise.
func (c *client) badFrame(x, v int) {
	if x%4 == 3 { // text where a frame should be
		c.raw([]byte("GET / HTTP/1.1\r\n\r\n"))
		return
	}
	lengths := []int32{-1, 1 << 30, 12}
	frame := binary.BigEndian.AppendUint32(nil, uint32(lengths[x%4]))
	c.raw(append(frame, bytes.Repeat([]byte{byte(v)}, 12)...))
}

// cutBody sends a request without its end. The frame's length is true.
func (c *client) cutBody(x, v int) {
	row := c.world.table[(x*20+v)%len(c.world.table)]
	req := kmsg.RequestForKey(row.Key)
	c.version(req, v)
	frame := rig.Frame(req, 1, clientID)
	frame = frame[:max(len(frame)-1-x%3, 14)]
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	c.raw(frame)
}

func (c *client) noSuchAPI(x, v int) {
	frame := rig.Frame(c.fetchOf(x), 1, clientID)
	binary.BigEndian.PutUint16(frame[4:], uint16(500*(x%2)+1))
	binary.BigEndian.PutUint16(frame[6:], uint16(90+v))
	c.raw(frame)
}

// wrongToken logs in with B's name and something that is not its token.
func (c *client) wrongToken(x, v int) {
	c.leave()
	own := c.key
	c.key = c.neighbour.key[:len(c.neighbour.key)-1] + "!"
	c.login(v)
	c.leave()
	c.key = own
}

func (c *client) theirsFetch(x, v int) {
	req := c.fetchOf(x)
	req.Topics[0].TopicID = c.neighbour.topics[x%2].id
	const ids = 13
	c.version(req, v, ids)
	c.ask(req)
}

// theirsSession goes on with B's session, or ends it.
func (c *client) theirsSession(x, v int) {
	s := c.neighbour.session
	req := c.fetchOf(x)
	req.SessionID, req.SessionEpoch = s.id, s.epoch
	if x/2%2 == 1 {
		req.SessionEpoch = -1
	}
	const sessions = 7
	c.version(req, v, sessions)
	c.ask(req)
}

// theirsProduce writes to B's topic by its id, as B's producer.
func (c *client) theirsProduce(x, v int) {
	p := c.neighbour.producer
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 30_000
	records := rig.Batch(sentAt(x), rig.Producer{ID: p.id, Epoch: p.epoch, Seq: p.next[x%2]}, "theirs")
	req.Topics = []kmsg.ProduceRequestTopic{{
		TopicID: c.neighbour.topics[x%2].id, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: records}},
	}}
	const ids = 13
	c.version(req, v, ids)
	c.ask(req)
}

func (c *client) theirsDeleteTopic(x, v int) {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 30_000
	req.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: c.neighbour.topics[x%2].id}}
	const ids = 6
	c.version(req, v, ids)
	c.ask(req)
}

// theirsCommit commits as B's member, to B's topic by its id.
func (c *client) theirsCommit(x, v int) {
	g := c.neighbour.groups[x%2]
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = groupName(x), g.member, g.instance, g.generation
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = int64(v)
	req.Topics = []kmsg.OffsetCommitRequestTopic{{
		TopicID: c.neighbour.topics[x%2].id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p},
	}}
	const ids = 10
	c.version(req, v, ids)
	c.ask(req)
}

// theirsMember speaks as B's member of the group of the same name.
func (c *client) theirsMember(x, v int) {
	if c.neighbour.groups[x%2].member == "" {
		return
	}
	own := c.groups[x%2]
	c.groups[x%2] = c.neighbour.groups[x%2]
	acts := []func(*client, int, int){(*client).join, (*client).sync, (*client).heartbeat, (*client).leaveGroup, (*client).commit, (*client).txnCommitOffsets}
	acts[v%len(acts)](c, x, v)
	c.groups[x%2] = own
}

// theirsProducer speaks as B's idempotent producer, an epoch ahead or not.
func (c *client) theirsProducer(x, v int) {
	own := c.producer
	c.producer = c.neighbour.producer
	c.producer.epoch += int16(x / 2 % 2)
	if v%2 == 0 {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = kmsg.StringPtr(txnName(x)), 60_000
		req.ProducerID, req.ProducerEpoch = c.neighbour.txns[x%2].id, c.neighbour.txns[x%2].epoch
		const named = 3
		c.version(req, v, named)
		c.ask(req)
	} else {
		c.produceIdempotent(x, v)
	}
	c.producer = own
}

// theirsTxn speaks as the producer of B's transactional id.
func (c *client) theirsTxn(x, v int) {
	own := c.txns[x%2]
	c.txns[x%2] = c.neighbour.txns[x%2]
	acts := []func(*client, int, int){(*client).addPartitions, (*client).addOffsets, (*client).txnProduce, (*client).txnCommitOffsets, (*client).endTxn}
	acts[v%len(acts)](c, x, v)
	c.txns[x%2] = own
}

// hoardConnections opens more connections than there may be, half of them
// without a word.
func (c *client) hoardConnections(_, v int) {
	more := make([]*client, ceiling+2)
	for i := range more {
		more[i] = c.another()
		if i%2 == 0 {
			more[i].login(v)
		} else if l, err := c.world.dial(); err == nil {
			more[i].link = l
		}
	}
	c.hoard = append(c.hoard, more...)
}

// another is a client of the same tenant that knows nothing.
func (c *client) another() *client {
	return &client{world: c.world, key: c.key, out: c.out, counted: c.counted, neighbour: c.neighbour}
}

// The rest takes more of a kind than one may have.

func (c *client) hoardGroups(_, v int) {
	c.hoards++ // names of their own: a second member of one would wait for the first
	for i := range ceiling + 2 {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.ProtocolType = fmt.Sprintf("hoard%d-%d", c.hoards, i), "consumer"
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 60_000, 60_000
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
		const atOnce = 4 // a member below it is taken in without being told its id first
		c.send(req, v%atOnce)
	}
}

func (c *client) hoardTxns(x, v int) {
	for i := range ceiling + 2 {
		id := kmsg.StringPtr(fmt.Sprint("hoard", i))
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = id, 60_000
		got, ok := askAt[*kmsg.InitProducerIDResponse](c, req, v)
		if !ok || got.ErrorCode != 0 {
			continue
		}
		c.topic(x)
		add := kmsg.NewPtrAddPartitionsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch = *id, got.ProducerID, got.ProducerEpoch
		add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topicName(x), Partitions: []int32{0}}}
		c.send(add, v)
	}
}

func (c *client) hoardProducers(x, v int) {
	const batches = 3
	for i := range ceiling + 2 {
		c.produceTo(x, v, rig.Producer{ID: int64(1000 + i)}, nil, batches, "hoard")
	}
}

func (c *client) hoardSessions(x, v int) {
	const sessions = 7
	for range ceiling + 2 {
		req := c.fetchOf(x)
		req.SessionEpoch = 0
		c.version(req, v, sessions)
		c.ask(req)
	}
}

// hoardCommits commits more offsets at once than may wait.
func (c *client) hoardCommits(x, v int) {
	t := c.topic(x)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = groupName(x), -1
	topic := kmsg.OffsetCommitRequestTopic{Topic: topicName(x), TopicID: t.id}
	for range ceiling + 2 {
		topic.Partitions = append(topic.Partitions, kmsg.NewOffsetCommitRequestTopicPartition())
	}
	req.Topics = append(req.Topics, topic)
	c.send(req, v)
}

// hoardTopics has more topics made than a cache holds, by looking at them.
func (c *client) hoardTopics(_, v int) {
	var names []string
	for i := range ceiling + 2 {
		names = append(names, fmt.Sprint("hoard", i))
	}
	const making = 4 // Metadata below it makes topics whether or not it is asked to
	c.send(metadataOf(names...), v%making)
}
