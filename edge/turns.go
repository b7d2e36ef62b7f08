package edge

import "context"

// leastTurns is how many requests are served at once for each processor, at least:
// while one is worked on the others are on their way to the cell, or back.
const leastTurns = 4

// takeTurn waits until it is this connection's turn to have something served
// (edge/turn), if there is something to serve.
func (c *conn) takeTurn() {
	if c.queue.waits() {
		c.seat.Take(c.poll.Done())
	}
}

// giveTurn ends the turn before the answer is written: a client that does not read
// keeps no other tenant waiting. What it cost is the bytes of the requests and of
// their answers.
func (c *conn) giveTurn(run []frame, answer int) {
	for i := range run {
		answer += len(run[i].req.Frame)
	}
	c.seat.Give(answer)
}

// runTurns hands out turns until the gateway drains: then everybody has one.
func (s *Server) runTurns(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	s.turns.Run(ctx)
}
