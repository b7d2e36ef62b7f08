package proxyclient

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Over TLS the name that is verified is the URL's; the lane's Host is only a
// header, and the protocol stays HTTP/1.1 where the cell would speak 2.
func TestLanesOverTLS(t *testing.T) {
	t.Parallel()
	var names []string
	cell := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names = append(names, r.Proto+" "+r.Host+" "+r.TLS.ServerName)
		_, _ = io.WriteString(w, `{"queues":[]}`)
	}))
	cell.EnableHTTP2 = true
	cell.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that is refused below
	cell.StartTLS()
	t.Cleanup(cell.Close)
	roots := x509.NewCertPool()
	roots.AddCert(cell.Certificate())
	url := cell.URL
	c := newTestClient(t, url, func(cfg *Config) { cfg.TLS = &tls.Config{RootCAs: roots} })
	for _, host := range []string{"a.example.cloud", "b.example.cloud"} {
		if _, err := c.ListQueues(t.Context(), scopeOf(t, testBearer, host)); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 2 || names[0] != "HTTP/1.1 a.example.cloud " || names[1] != "HTTP/1.1 b.example.cloud " {
		t.Errorf("%q", names)
	}
	// Unknown roots: a transport failure.
	c = newTestClient(t, url)
	_, err := c.ListQueues(t.Context(), testScope(t))
	if e := mustError(t, err, KindTransport); !strings.Contains(e.Error(), "certificate") {
		t.Error(e)
	}
}
