// Package proxy is the embedded cell's HTTP front: it turns a bearer and a
// Host into a cluster, decides what that may do, and answers the routes of
// cell-http §3 from a broker. What a request may touch follows from its
// cluster alone; no header, path or body names a tenant.
package proxy
