// Package peer starts the systems that are measured, each of its parts a process
// of its own, and reads what the kernel and the system itself count of them. It
// needs Linux.
package peer
