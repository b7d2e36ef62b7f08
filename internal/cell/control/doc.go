// Package control keeps who may use the embedded cell: paying tenants, their
// clusters, and the API keys of those clusters (cell-http §2.3, §5.4). A key's
// text is shown once and never stored; only its SHA-256 is.
//
// Everything is in one file, control.json, replaced as a whole at each change.
// Requests read an immutable snapshot of it and never wait for a change.
package control
