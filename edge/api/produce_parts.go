package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/batch"
	"github.com/queen-mq/queen-edge/edge/catalog"
	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// part is one partition of one request: what is sent for it and what became of
// it.
type part struct {
	frame int // which request of the run
	topic int // which topic of the request
	name  string
	id    catalog.TopicID // named by it from version 13 on
	recs  []byte
	resp  *kmsg.ProduceResponseTopicPartition

	batches []batch.Batch
	bytes   int64 // of keys, values and headers

	sequenced bool
	window    bool // the log knows resends of its batches
	seq       txn.Batch
	producer  int64
	ticket    txn.Ticket
	admitted  bool

	from, to proxyclient.Mark // its items in the body
	done     bool             // answered
}

// produceRun is a run of Produce requests on its way.
type produceRun struct {
	h       *Handlers
	c       *Conn
	reqs    []*kmsg.ProduceRequest
	resps   []*kmsg.ProduceResponse
	parts   []part
	body    *proxyclient.PushBody
	dec     *batch.Decoder
	room    lease // of the records in memory
	sent    int   // bytes of records as they came
	used    int64 // the most memory they took
	results []proxyclient.PushResult
}

func (h *Handlers) newRun(c *Conn, reqs []*kmsg.ProduceRequest) *produceRun {
	r := &produceRun{h: h, c: c, reqs: reqs, body: proxyclient.NewPushBody(), dec: h.decoders.Get()}
	n := 0
	for _, req := range reqs {
		for i := range req.Topics {
			n += len(req.Topics[i].Partitions)
		}
	}
	r.parts = make([]part, 0, n)
	for i, req := range reqs {
		r.addRequest(i, req)
	}
	return r
}

func (r *produceRun) release() {
	r.h.decoders.Put(r.dec)
	r.body.Release()
	r.giveRoom()
}

// addRequest makes the response, in request order with one entry per requested
// partition, and the parts that fill it.
func (r *produceRun) addRequest(frame int, req *kmsg.ProduceRequest) {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	resp.Topics = make([]kmsg.ProduceResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, rt := &req.Topics[i], &resp.Topics[i]
		rt.Default()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		rt.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p, rp := &t.Partitions[j], &rt.Partitions[j]
			rp.Default()
			rp.Partition, rp.BaseOffset, rp.LogAppendTime, rp.LogStartOffset = p.Partition, -1, -1, -1
			r.parts = append(r.parts, part{frame: frame, topic: i, name: t.Topic, id: t.TopicID, recs: p.Records, resp: rp})
		}
	}
	r.resps = append(r.resps, resp)
}

// resolve answers the parts whose request or topic already decides.
func (r *produceRun) resolve(topics, ids []catalog.Resolved) {
	byName := make(map[string]*catalog.Resolved, len(topics))
	for i := range topics {
		byName[topics[i].Name] = &topics[i]
	}
	byID := make(map[catalog.TopicID]*catalog.Resolved, len(ids))
	for i := range ids {
		byID[ids[i].ID] = &ids[i]
	}
	for i := range r.parts {
		p := &r.parts[i]
		if code, text := requestRefusal(r.reqs[p.frame]); code != 0 {
			r.refuse(p, code, text)
			continue
		}
		topic := byName[p.name]
		if r.byID(p) {
			topic = byID[p.id]
			p.name = topic.Name
		}
		if topic == nil { // its transaction has no part of it, and will say so
			continue
		}
		switch {
		case topic.State != catalog.Found:
			r.unresolved(p, *topic)
		case p.resp.Partition < 0 || p.resp.Partition >= topic.Topic.Width:
			r.refuse(p, kerr.UnknownTopicOrPartition.Code, fmt.Sprintf("The topic has partitions 0 to %d.", topic.Topic.Width-1))
		}
		p.window = topic.Topic.Window > 0
	}
}

// byID reports whether a part's topic is named by its id.
func (r *produceRun) byID(p *part) bool { return r.reqs[p.frame].Version >= firstProduceIDs }

// stream is the sequence a part belongs to. One that names its topic by id is
// told apart by that: the name is not known while the listing cannot be read, and
// a topic that was made anew begins anew.
func (r *produceRun) stream(p *part) txn.Stream {
	s := txn.Stream{ProducerID: p.producer, Topic: p.name, Partition: p.resp.Partition}
	if r.byID(p) {
		s.Topic = "id:" + string(p.id[:]) // no name has a colon
	}
	return s
}

// requestRefusal is why a request is refused whole, before its topics are looked
// at; 0: it is not.
func requestRefusal(req *kmsg.ProduceRequest) (code int16, text string) {
	switch {
	case req.Acks < -1 || req.Acks > 1:
		return kerr.InvalidRequiredAcks.Code, "acks must be 0, 1 or -1."
	}
	return 0, ""
}

func (r *produceRun) unresolved(p *part, t catalog.Resolved) {
	o := outcome{code: unresolved(t).Code, throttle: throttleOf(t.Err)}
	text := "The topic does not exist."
	switch t.State {
	case catalog.Missing:
		if t.ByID {
			text = "No topic has this id."
		}
	case catalog.Illegal:
		text = "The topic name is not legal."
	case catalog.Failed, catalog.Refused:
		text = "The topic could not be looked up or created."
		if e, ok := proxyclient.AsError(t.Err); ok {
			text = e.WireText()
		}
	case catalog.Later:
		text = "Too many topics to create in one request."
	}
	r.throttle(p, o.throttle)
	r.refuse(p, o.code, text)
}

// fill checks the parts [lo, hi), which are one request's, and encodes their
// records into the push body. A part that was refused above is judged too: its
// followers must not overtake it.
func (r *produceRun) fill(ctx context.Context, lo, hi int) {
	budget := batch.Budget{Bytes: r.h.cfg.DecompressedBytes, Records: r.h.cfg.ProduceRecords}
	for i := lo; i < hi; i++ {
		r.fillPart(ctx, &r.parts[i], &budget)
	}
}

func (r *produceRun) fillPart(ctx context.Context, p *part, budget *batch.Budget) {
	p.from, p.to = r.body.Mark(), r.body.Mark()
	if len(p.recs) == 0 {
		p.done = true // nothing to write is written; base offset −1
		return
	}
	id := transactionalID(r.reqs[p.frame])
	if err := p.walk(r.reqs[p.frame].Version, id != ""); err != nil {
		r.refuseBatch(p, err)
	}
	if p.sequenced && !r.admit(p) {
		return
	}
	if p.done { // refused by acks, topic or header: now its followers know
		r.failed(p, p.resp.ErrorCode)
		return
	}
	if err := r.encode(p, budget); err != nil {
		r.body.Truncate(p.from)
		r.refuseBatch(p, err)
		return
	}
	if id == "" {
		p.to = r.body.Mark()
		return
	}
	r.stage(ctx, p, id)
	r.body.Truncate(p.from)
}

// Refusals of a batch by its header.
var (
	errTransactional = errors.New("transactional records need a transactional id on the request")
	errControl       = errors.New("control records are written by brokers only")
	errMixed         = errors.New("one partition holds batches of several producers")
	errGap           = errors.New("the batches of a partition do not follow each other")
	errBaseOffset    = errors.New("the base offset of a batch is not 0")
	errZstd          = errors.New("zstd needs version 7 of Produce")
	errOldMagic      = errors.New("messages of magic 0 and 1 end with version 2 of Produce")
	errMagics        = errors.New("one partition holds batches of several formats")
)

// magicV2 is the format of record batches; 0 and 1 are those of messages.
const magicV2 = 2

// firstZstd is the version from which a producer may compress with zstd: a
// client below it could not read what it wrote (KIP-110).
const firstZstd = 7

// firstV2 is the version from which a request carries batches of magic 2 only
// (KIP-98). Below it any format is taken, as Apache Kafka does: some clients sent
// one that their version should not have.
const firstV2 = 3

// walk reads the headers of a part's batches, without decompressing, and finds
// its sequence range.
func (p *part) walk(version int16, transaction bool) error {
	for rest := p.recs; len(rest) > 0; {
		if err := p.checkMagic(rest, version); err != nil {
			return err
		}
		b, next, err := batch.Next(rest)
		if err != nil {
			return err
		}
		rest = next
		if err := headerRefusal(&b, version, transaction); err != nil {
			if len(p.batches) == 0 {
				_ = p.follow(&b) // for what is behind it; the refusal stands
			}
			return err
		}
		if err := p.follow(&b); err != nil {
			return err
		}
		p.batches = append(p.batches, b)
	}
	return nil
}

// headerRefusal is why a sound batch may not be here; nil: it may.
func headerRefusal(b *batch.Batch, version int16, transaction bool) error {
	switch {
	case b.IsControl():
		return errControl
	case b.IsTransactional() && !transaction:
		return errTransactional
	case b.BaseOffset != 0 && b.Magic == magicV2:
		return errBaseOffset
	case b.Codec() == batch.Zstd && version < firstZstd:
		return errZstd
	}
	return nil
}

// checkMagic refuses a format that may not stand here. One that nobody knows is
// for the codec to refuse.
func (p *part) checkMagic(rest []byte, version int16) error {
	magic, ok := batch.MagicOf(rest)
	switch {
	case !ok || magic < 0 || magic > magicV2:
		return nil
	case magic < magicV2 && version >= firstV2:
		return errOldMagic
	case len(p.batches) > 0 && p.batches[0].Magic != magic:
		return errMagics
	}
	return nil
}

// follow extends the part's sequence range by one batch.
func (p *part) follow(b *batch.Batch) error {
	first := len(p.batches) == 0
	sequenced := b.ProducerID >= 0
	if sequenced && (b.BaseSequence < 0 || b.ProducerEpoch < 0 || b.NumRecords < 1) {
		return batch.ErrInvalidRecord
	}
	if first {
		p.sequenced, p.producer = sequenced, b.ProducerID
		p.seq = txn.Batch{Epoch: b.ProducerEpoch, First: b.BaseSequence}
	}
	if sequenced != p.sequenced || b.ProducerID != p.producer || sequenced && b.ProducerEpoch != p.seq.Epoch {
		return errMixed
	}
	if !sequenced {
		return nil
	}
	if !first && b.BaseSequence != (p.seq.Last+1)&(1<<31-1) {
		return errGap
	}
	p.seq.Last = (b.BaseSequence + b.NumRecords - 1) & (1<<31 - 1)
	return nil
}

// admit asks the connection's order; false means that the part is answered.
func (r *produceRun) admit(p *part) bool {
	staged := transactionalID(r.reqs[p.frame]) != ""
	v := r.c.order.Admit(tenancy.KeyOf(r.c.scope, r.stream(p)), p.seq, p.window || staged) // the log, or the stage, knows a resend
	if staged && v.Decision == txn.Refuse && v.Code == txn.InvalidEpoch {
		return true // the stage knows whose epoch it is
	}
	switch v.Decision {
	case txn.Duplicate:
		if !p.done {
			p.resp.BaseOffset, p.done = v.Offset, true
		}
		return false
	case txn.Refuse:
		r.refuse(p, v.Code, "The batch is out of order on this connection.")
		return false
	}
	p.ticket, p.admitted = v.Ticket, true
	return true
}

// encode decompresses a part's records into the push body.
func (r *produceRun) encode(p *part, budget *batch.Budget) error {
	seq := p.seq.First
	for i := range p.batches {
		b, first := &p.batches[i], seq
		r.h.Stats.batch(b.Codec())
		bytes := p.bytes
		err := r.each(b, budget, func() { seq, p.bytes = first, bytes }, func(rec *batch.Record) error {
			p.bytes += recordBytes(rec)
			if !p.sequenced || transactionalID(r.reqs[p.frame]) != "" {
				r.body.Add(p.name, p.resp.Partition, rec)
				return nil
			}
			r.body.AddKeyed(p.name, p.resp.Partition, rec,
				proxyclient.ProducerKey{ID: p.producer, Epoch: p.seq.Epoch, Partition: p.resp.Partition, Sequence: seq})
			seq = (seq + 1) & (1<<31 - 1)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// refuseBatch answers a part whose bytes are refused.
func (r *produceRun) refuseBatch(p *part, err error) {
	code, text := batchRefusal(err)
	r.refuse(p, code, text)
	r.failed(p, p.resp.ErrorCode)
}

func batchRefusal(err error) (int16, string) {
	switch {
	case errors.Is(err, errNoRoom):
		return kerr.RequestTimedOut.Code, noRoomText
	case errors.Is(err, errTransactional):
		return kerr.TransactionalIDAuthorizationFailed.Code, "Transactional records need a transactional id on the request."
	case errors.Is(err, errControl):
		return kerr.InvalidRecord.Code, "Control records are written by brokers only."
	case errors.Is(err, errMixed):
		return kerr.InvalidRecord.Code, "One partition holds batches of several producers."
	case errors.Is(err, errBaseOffset):
		return kerr.InvalidRecord.Code, "The base offset of a batch must be 0."
	case errors.Is(err, errZstd):
		return kerr.UnsupportedCompressionType.Code, "zstd needs version 7 of Produce or a later one."
	case errors.Is(err, errOldMagic):
		return kerr.InvalidRecord.Code, "From version 3 on Produce takes record batches of magic 2 only."
	case errors.Is(err, errMagics):
		return kerr.InvalidRecord.Code, "One partition holds batches of several formats."
	case errors.Is(err, errGap):
		return kerr.OutOfOrderSequenceNumber.Code, "The batches of one partition do not follow each other."
	case errors.Is(err, batch.ErrTooLarge):
		return kerr.MessageTooLarge.Code, "The request holds more records or more decompressed bytes than one request may."
	case errors.Is(err, batch.ErrMagic):
		return kerr.UnsupportedForMessageFormat.Code, "No record batch of magic 0 to 2 was recognised."
	case errors.Is(err, batch.ErrInvalidRecord):
		return kerr.InvalidRecord.Code, "The batch holds a record that is not valid."
	}
	return kerr.CorruptMessage.Code, "The record batch is corrupt."
}

// refuse answers a part; the first refusal stands.
func (r *produceRun) refuse(p *part, code int16, text string) {
	if p.done {
		return
	}
	p.done = true
	p.resp.ErrorCode, p.resp.ErrorMessage = code, &text
}

// throttle asks the client of a part's request to slow down.
func (r *produceRun) throttle(p *part, ms int32) {
	resp := r.resps[p.frame]
	resp.ThrottleMillis = max(resp.ThrottleMillis, ms)
}

// retriable are the codes after which the client sends the same batch again.
func retriable(code int16) bool {
	switch code {
	case kerr.CorruptMessage.Code, kerr.UnknownTopicOrPartition.Code, kerr.LeaderNotAvailable.Code,
		kerr.NotLeaderForPartition.Code, kerr.RequestTimedOut.Code, kerr.UnknownTopicID.Code:
		return true
	}
	return false
}

// failed tells the order that an admitted part was not stored: its followers get
// the same code where it is retriable, else 45 (B3).
func (r *produceRun) failed(p *part, code int16) {
	if !p.admitted {
		return
	}
	if !retriable(code) {
		code = txn.OutOfOrderSequence
	}
	r.c.order.Failed(p.ticket, code)
}
