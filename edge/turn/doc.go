// Package turn hands out the process's work between tenants while there is more
// than it can do (B6).
//
// A request takes a turn before it is served and gives it back with its answer,
// the cell's call between them included: what a request costs here is spread over
// reading, calling and writing, so that only the number of requests on their way
// says how long the next one waits for a processor. While the Go scheduler is in
// time there are as many turns as anybody takes, and nobody waits. While it is
// late, and several tenants are there, the turns are few, and who waits for one is
// taken by tenant: the one that has had least, by bytes; its oldest request first.
//
// Nobody can keep a turn by waiting for something else: it ends by itself after
// longestTurn. Nobody is refused: who has waited for longestWait is served without
// one. So no lock-up can come of turns, whatever a handler waits for.
package turn
