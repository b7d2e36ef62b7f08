package rig

import (
	"crypto/x509"
	"net"
	"os"
	"testing"
)

// Elsewhere says where a system is that somebody else runs.
type Elsewhere struct {
	Bootstrap string            // host:port of the gateway; may be empty
	CAFile    string            // PEM of the authorities to trust; "system": the machine's own
	CellURL   string            // of the cell; may be empty
	Keys      map[string]string // texts by the rig's names; what is not there is empty
}

// At is a system that somebody else runs, for what clients can do with it.
// Nothing of it can be started or stopped.
func At(tb testing.TB, e Elsewhere) *Rig {
	tb.Helper()
	r := &Rig{Addr: e.Bootstrap, CellURL: e.CellURL, CAFile: e.CAFile, keys: e.Keys}
	if e.Bootstrap == "" || e.CAFile == "" {
		return r // only the cell can be asked
	}
	host, _, err := net.SplitHostPort(e.Bootstrap)
	check(tb, err)
	r.host = host
	if e.CAFile == "system" {
		r.Roots, err = x509.SystemCertPool()
		check(tb, err)
		return r
	}
	pem, err := os.ReadFile(e.CAFile)
	check(tb, err)
	r.Roots = x509.NewCertPool()
	if !r.Roots.AppendCertsFromPEM(pem) {
		tb.Fatalf("%s holds no certificate", e.CAFile)
	}
	return r
}
