// Package txn holds what the gateway knows about producers, and no more than it
// must.
//
// Order (order.go) judges the sequences of idempotent batches on one connection.
//
// Stage is one transactional id's live state: what its open transaction would
// write. It is a value that a pure function moves (step.go and the files named
// after their requests); Coordinator is the thin loop around it, with the
// ceilings, the timers and the calls to the store.
package txn
