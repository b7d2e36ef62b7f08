// Package tenancy says who a connection is.
//
// A Claim is what a client said: a bearer and the name it dialled. It proves
// nothing. A Scope is what the cell confirmed; only Verify makes one, and all
// tenant state is keyed by a Key, which only a Scope can make. A program that
// forgets the tenant does not compile (testdata/misuse).
//
// The package is at the bottom of the import order: it knows neither Kafka nor
// HTTP. The cell is asked through the Cell interface.
package tenancy
