// Package noninterference lets two tenants of one gateway, A and B, go through
// drawn scripts over every announced API with equal names on both sides, and
// holds what B is answered against what B is answered when A is not there. A is
// well-behaved, hostile, throttled, revoked or over quota. It has tests only; run
// them with -v to see how often each API was asked (docs/ISOLATION.md).
package noninterference
