// Package proxyclient is the typed client of a cell's HTTP contract.
//
// Every call takes a Scope (or, before login, a Claim), presents that scope's
// own bearer and Host over one shared connection pool, and never repeats a
// call by itself: a push that timed out may have been stored. Answers are
// aligned with what was asked; one that does not line up is a body failure,
// never a guess. Section numbers in comments are those of the cell's HTTP
// contract.
package proxyclient
