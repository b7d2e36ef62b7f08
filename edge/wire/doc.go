// Package wire reads and writes Kafka's frames and headers: a 4-byte big-endian
// length, then a header and a body. It allocates for bytes that arrived, never
// for a length that was declared.
package wire
