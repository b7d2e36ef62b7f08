// Package api answers Kafka requests. table.go is the one list of APIs; every
// API key has a file of its own (NN_name.go) that opens with its versions,
// behaviours and gaps.
//
// A Kafka error goes into the response. A Go error ends the connection; it is
// always a *wire.Close and is never shown to the client.
package api
