// Package group is the coordinator of classic consumer groups: who is a member
// of which generation, and what each was assigned.
//
// A group is a pure state machine (state.go): step(now, event) decides and
// returns effects. A Coordinator keeps one for each (tenant, group id), serves
// it serially and runs its timers. Nothing is kept but in memory; committed
// offsets are no business of this package.
//
// Answers carry Kafka's codes as *kerr.Error; nil is success.
package group
