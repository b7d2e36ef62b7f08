// Package txn decides about producer ids and the order of idempotent batches.
// It is pure state: no clock, no I/O, no Kafka messages.
package txn
