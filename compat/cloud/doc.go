// Package cloud is the proof of isolation: the sixteen scenarios of the cell
// contract (cell-http §9) and more, by Kafka clients of two tenants with equal
// names on both sides. It stands a whole system up from nothing, or is pointed at
// any other by QUEEN_EDGE_ variables, as the demo's env file has them
// (docs/ISOLATION.md). It has tests only; run them with -v to see the table.
package cloud
