// Package batch reads and writes Kafka record batches (magic 2, KIP-98): a leaf
// codec that knows bytes and budgets, and neither tenants nor HTTP.
package batch
