package txn

// Sequences are the batches that one partition of a transactional producer has
// staged, whatever connection they came on. They tell a batch that comes again
// from a new one: unlike the log of an idempotent producer, the stage cannot ask
// the cell.
type Sequences struct {
	Known  bool
	Next   int32 // the sequence that is to come
	Txn    int64 // the transaction of the last batch
	Recent []SeqRange
}

// SeqRange is the sequence range of one staged batch.
type SeqRange struct{ First, Last int32 }

type seqVerdict uint8

const (
	seqNew seqVerdict = iota
	seqAgain
	seqOld   // behind, and no batch that is remembered
	seqAhead // a batch between is missing
)

// judge compares a batch with what came before. inside says that the open
// transaction holds records of the partition already: at its start a sequence
// that lies ahead is accepted, as the producer may have given batches up with
// the transaction before.
func (q *Sequences) judge(first, last int32, inside bool) seqVerdict {
	if !q.Known {
		return seqNew
	}
	for _, r := range q.Recent {
		if r.First == first && r.Last == last {
			return seqAgain
		}
	}
	switch ahead := (first - q.Next) & (1<<31 - 1); {
	case ahead == 0:
		return seqNew
	case ahead >= 1<<30:
		return seqOld
	case inside:
		return seqAhead
	}
	return seqNew
}

func (q *Sequences) staged(first, last int32) {
	q.Known, q.Next = true, (last+1)&(1<<31-1)
	if len(q.Recent) == rememberedBatches {
		q.Recent = append(q.Recent[:0], q.Recent[1:]...)
	}
	q.Recent = append(q.Recent, SeqRange{First: first, Last: last})
}
