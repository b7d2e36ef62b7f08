package txn

import (
	"cmp"
	"slices"
	"time"
)

// Producer is a producer id at an epoch.
type Producer struct {
	ID    int64
	Epoch int16
}

// Nobody is no producer.
func Nobody() Producer { return Producer{ID: -1, Epoch: -1} }

// Named reports whether it is a producer at all.
func (p Producer) Named() bool { return p.ID >= 0 && p.Epoch >= 0 }

// Phase is where a transactional id stands.
type Phase uint8

// Phases of a Stage.
const (
	Empty      Phase = iota // no transaction
	Open                    // partitions or offsets were added
	Committing              // the commit call is under way
	Poisoned                // a batch was refused for its size: only an abort goes
	Expired                 // its time ran out: only an abort goes
	Lost                    // an earlier owner held it and is gone: only an abort goes
)

// String is the word of scenario files.
func (p Phase) String() string {
	return [...]string{"empty", "open", "committing", "poisoned", "expired", "lost"}[p]
}

// Stage is the live state of one transactional id. It is a plain value: it can
// be copied whole to another replica and go on there.
type Stage struct {
	Known    bool     // the row has been read or written, so what follows is true
	Producer Producer // who may use it
	Previous Producer // the predecessor a bump named; Nobody: none
	Version  int64    // of the row: the fence
	Timeout  time.Duration
	Phase    Phase
	Last     RowState // how the last transaction ended, while Empty
	Seq      int64    // transactions so far
	Started  time.Time
	Deadline time.Time // of the open transaction
	Orphaned time.Time // when its connection closed; zero: it has one

	// Commit is the id of the commit that was tried, "" before. While it stands
	// the outcome is open: an answer was lost.
	Commit string
	// Unsure are the ids of writes whose answers were lost. One of them may be
	// what the row says now.
	Unsure []string

	Partitions []Partition // by topic and index
	Groups     []Group
	Offsets    []Offset
	Chunks     []Chunk
	Records    int   // staged
	Bytes      int64 // keys, values and headers of the staged records
	Body       int64 // about what the commit call takes
	Held       int64 // memory that was taken for this stage

	doing doing  // while a call is under way
	ended ending // of the last step, until it is counted
}

// Partition is one partition of the transaction, or of the one before: its
// sequences outlive the transaction, so that a batch that arrives again late is
// known for what it is.
type Partition struct {
	Topic string
	Index int32
	Added int64 // number of the transaction that added it
	Seqs  Sequences
}

// Group is a consumer group whose offsets the transaction may carry, with its
// row in the index of groups.
type Group struct {
	ID     string
	Index  Put
	Staged bool // offsets of it are
}

// Offset is one staged offset, with the row that the commit writes.
type Offset struct {
	Group, Topic string
	Partition    int32
	Row          Put
}

// Chunk is staged records of one partition, encoded as the commit sends them.
type Chunk struct {
	Items []byte
	Count int
}

// Limits bound a transaction. All are inclusive.
type Limits struct {
	Bytes      int64 // of records (QUEEN_KAFKA_TXN_MAX_BYTES)
	Records    int   // QUEEN_KAFKA_TXN_MAX_RECORDS
	Body       int64 // what one call carries, encoded
	Partitions int
}

func newStage() *Stage { return &Stage{Producer: Nobody(), Previous: Nobody()} }

// partition finds a partition of the transaction or the one before.
func (s *Stage) partition(topic string, index int32) *Partition {
	i, ok := s.place(topic, index)
	if !ok {
		return nil
	}
	return &s.Partitions[i]
}

// place is where a partition is, or would be. There may be ten thousand, and a
// request may name each of them, or one of them, as often as a frame has room for.
func (s *Stage) place(topic string, index int32) (int, bool) {
	return slices.BinarySearchFunc(s.Partitions, TopicPartition{topic, index}, func(p Partition, at TopicPartition) int {
		return cmp.Or(cmp.Compare(p.Topic, at.Topic), cmp.Compare(p.Index, at.Index))
	})
}

// added finds a partition of the open transaction.
func (s *Stage) added(topic string, index int32) *Partition {
	if p := s.partition(topic, index); p != nil && p.Added == s.Seq {
		return p
	}
	return nil
}

func (s *Stage) group(id string) *Group {
	for i := range s.Groups {
		if s.Groups[i].ID == id {
			return &s.Groups[i]
		}
	}
	return nil
}

// drop lets go of what the transaction would have written.
func (s *Stage) drop() {
	s.Groups, s.Offsets, s.Chunks = nil, nil, nil
	s.Records, s.Bytes, s.Body = 0, 0, 0
	s.Commit = ""
}

// end closes the transaction. Partitions of this transaction stay for the
// sake of their sequences, those of earlier ones go.
func (s *Stage) end(how RowState) {
	s.ends(endingOf(how))
	s.drop()
	s.Phase, s.Last = Empty, how
	s.Partitions = slices.DeleteFunc(s.Partitions, func(p Partition) bool { return p.Added < s.Seq })
	s.Started, s.Deadline = time.Time{}, time.Time{}
}

// weight is the memory of one partition, group or offset beside its bytes.
const weight = 160

// size is the memory the stage takes, as the ceiling on staged bytes counts it.
func (s *Stage) size() int64 {
	n := int64(0)
	for i := range s.Partitions {
		n += int64(len(s.Partitions[i].Topic)) + weight
	}
	for i := range s.Groups {
		n += s.Groups[i].size()
	}
	for i := range s.Offsets {
		n += s.Offsets[i].size()
	}
	for i := range s.Chunks {
		n += s.Chunks[i].size()
	}
	return n
}

// body is what a write of the commit call takes.
func (g *Group) body() int64  { return int64(len(g.Index.Key)+len(g.Index.Value)) + opFrame }
func (o *Offset) body() int64 { return int64(len(o.Row.Key)+len(o.Row.Value)) + opFrame }

func (g *Group) size() int64 { return int64(len(g.ID)+len(g.Index.Key)+len(g.Index.Value)) + weight }

func (o *Offset) size() int64 { return int64(len(o.Topic)+len(o.Row.Key)+len(o.Row.Value)) + weight }
func (c *Chunk) size() int64  { return int64(len(c.Items)) + weight }

const (
	bodyFrame = 2 << 10 // the row with the fence, and what is around all
	opFrame   = 96      // {"op":"put","ns":"queen-kafka","key":…,"value":…,"forever":true}
)
