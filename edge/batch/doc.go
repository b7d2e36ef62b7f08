// Package batch reads and writes Kafka record batches (magic 2, KIP-98) and reads
// the message sets before them (magic 0 and 1, KIP-32): a leaf codec that knows
// bytes and budgets, and neither tenants nor HTTP.
package batch
