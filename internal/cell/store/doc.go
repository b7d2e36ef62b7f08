// Package store keeps the embedded cell's data: one append-only log per data
// folder and a Pebble index beside it.
//
// The log alone decides what is durable. One goroutine, the writer, takes the
// commands that wait, lets each plan its entry, writes the entries one behind
// the other and pays one fdatasync for the whole group; only then do the
// entries reach the index (unsynced), become visible and are answered. The
// index names the position it was applied up to in the same Pebble batch, so
// after a crash it comes back as some earlier prefix and the log from there on
// is applied again. Log and index go through one vfs.FS, so that one crashable
// memory file system cuts both.
//
// Log files are filled with zeros once (ahead of time, or a stretch ahead of
// the writer) and then used over and over: a file in
// use (a segment) has a number that is never given twice, every entry repeats
// it, and so nothing left from an earlier use can be taken for an entry. Each
// opening starts a new segment, so nothing behind a torn tail can either.
//
// A segment is taken out of use when no index row points into it and Pebble has
// flushed everything applied until then: from that moment neither reading nor a
// replay can want it. To get there, the owner of the rows copies what is live
// in a sparse segment forward.
//
// What an entry means is not known here: see Machine.
package store
