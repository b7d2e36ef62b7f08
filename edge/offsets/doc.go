// Package offsets keeps the committed offsets of consumer groups in the cell's
// keys and values: how they are named and written, how they are read without
// taking "unread" for "absent", and in which order they are written.
//
// Commits of one group are serial, whatever the credential. Those that wait
// under one credential share a call. Nothing is remembered but which groups have
// their row in the index.
package offsets
