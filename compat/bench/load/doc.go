// Package load is the load program: one workload of one peer, in a process of
// its own, through franz-go with the same settings for every peer. What is read
// is held against what was written; any error of the client ends it.
//
// It reads a Spec from stdin and says on stdout, a JSON line each, when it is
// ready and what it measured; it goes on when it is told "go", and ends when it
// is told "end". So the one who started it can look at the processes at the
// very moments in which the measured part begins and ends.
package load
