// Package contract holds the cell contract (cell-http) as cases that are run
// against a cell over HTTP: always the embedded one, and any other that
// QUEEN_EDGE_CELL_URL and QUEEN_EDGE_TOKEN_* name, as the demo's env file has
// them. It has tests only; run them with -v to see what they print at the end.
package contract
