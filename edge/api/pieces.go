package api

import "github.com/queen-mq/queen-edge/edge/slab"

// mostPiece is how large the pieces of an answer become that hold several
// batches.
const mostPiece = 1 << 20

// pieces is the memory that the batches of an answer lie in until it is written:
// lent, and used again for the next one. A batch lies in one piece. One that is
// whole does not move; one that is being made moves to a larger piece when its
// own is full.
type pieces struct {
	pool *slab.Pool
	all  []*[]byte // what is whole; one that is being made is behind it in the last
	held int       // their size
}

// last is the piece that a new batch begins in.
func (p *pieces) last() []byte {
	if n := len(p.all); n > 0 {
		return *p.all[n-1]
	}
	return nil
}

// close takes the last piece back with another batch at its end.
func (p *pieces) close(piece []byte) {
	if n := len(p.all); n > 0 {
		*p.all[n-1] = piece
	}
}

// want is how large the next piece is to be for a batch of so many bytes: as much
// again as there is, so that a single record takes little.
func (p *pieces) want(need int) int { return slab.Size(max(need, min(p.held, mostPiece))) }

// add goes on with another piece of the pool, to which the batch that is being
// made has been moved. The one before it goes back if there is nothing left in it.
func (p *pieces) add(piece *[]byte) {
	if n := len(p.all); n > 0 && len(*p.all[n-1]) == 0 {
		p.giveBack(n - 1)
		p.all = p.all[:n-1]
	}
	p.all = append(p.all, piece)
	p.held += cap(*piece)
}

func (p *pieces) giveBack(i int) {
	p.held -= cap(*p.all[i])
	p.pool.Put(p.all[i])
	p.all[i] = nil
}

// release gives everything back.
func (p *pieces) release() {
	for i := range p.all {
		p.giveBack(i)
	}
	p.all = p.all[:0]
}
