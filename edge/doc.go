// Package edge is one connection's life, from accept to close: TLS, login, and
// a loop that reads frames and answers them in order. conn.go reads top to
// bottom; the APIs are in edge/api.
package edge
