// Package session keeps fetch sessions (KIP-227): what a consumer asks for and
// what it was told, so that request and answer need hold no more than what has
// changed. A session belongs to one connection, which alone uses it; its tenant's
// other connections may only take its place when it has been idle for long.
package session
