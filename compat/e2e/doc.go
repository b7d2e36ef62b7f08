// Package e2e holds the tests that look at the whole system as clients do, with
// real clients and raw frames.
package e2e
