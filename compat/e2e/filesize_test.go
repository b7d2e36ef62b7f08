//go:build !race

package e2e

// fileSize is what a text file must have before it counts as real.
const fileSize = 50 << 20
