package proxyclient

import (
	"strconv"
	"sync"
)

// lane is what the items of one partition, and of one producer, begin with. It
// is the same for a batch's thousands of records, so it is written once and
// then copied.
type lane struct {
	queue     string
	partition int32
	keyed     bool
	key       ProducerKey // but for the sequence
	text      []byte
}

func (l *lane) is(queue string, partition int32) bool {
	return len(l.text) > 0 && !l.keyed && l.partition == partition && l.queue == queue
}

func (l *lane) isKeyed(queue string, partition int32, k ProducerKey) bool {
	k.Sequence = 0
	return l.keyed && l.key == k && l.partition == partition && l.queue == queue
}

func (l *lane) set(queue string, partition int32) {
	l.queue, l.partition, l.keyed = queue, partition, false
	l.text = appendLane(append(l.text[:0], ',', '{'), queue, partition)
}

func (l *lane) setKeyed(queue string, partition int32, k ProducerKey) {
	l.set(queue, partition)
	k.Sequence = 0
	l.keyed, l.key = true, k
	b := append(l.text, `,"transactionId":"qe:`...)
	b = append(strconv.AppendInt(b, k.ID, 10), ':')
	b = append(strconv.AppendInt(b, int64(k.Epoch), 10), ':')
	l.text = append(strconv.AppendInt(b, int64(k.Partition), 10), ':')
}

// bodies keeps released bodies without their chunks.
type bodies struct{ p sync.Pool }

func (p *bodies) get() *PushBody {
	if b, ok := p.p.Get().(*PushBody); ok {
		return b
	}
	return &PushBody{}
}

func (p *bodies) put(b *PushBody) { p.p.Put(b) }
