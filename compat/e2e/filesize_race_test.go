//go:build race

package e2e

// fileSize is a tenth of the real thing: every line is a record, and the race
// detector makes each of them twenty times as slow.
const fileSize = 5 << 20
