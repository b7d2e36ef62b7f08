package proxyclient

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Defaults of Config.
const (
	DefaultConnectTimeout = 3 * time.Second
	DefaultCallTimeout    = 10 * time.Second
	DefaultMaxIdlePerHost = 512
)

// Config says where the cell is. Only URL is required.
type Config struct {
	URL            string        // http or https, with a host; a path is kept, trailing slashes are not
	ConnectTimeout time.Duration // TCP connect, and again the TLS handshake; 0 is 3 s
	CallTimeout    time.Duration // one whole call; Fetch adds its wait; 0 is 10 s
	MaxIdlePerHost int           // idle connections kept; 0 is 512
	DialContext    func(ctx context.Context, network, addr string) (net.Conn, error)
	TLS            *tls.Config // of an https URL; nil is the system's roots

	// Observe is told of every finished call: its route (one of Routes), the
	// HTTP status (0 where none was read) and how long it took, the reading of
	// the answer included.
	Observe func(route string, status int, d time.Duration)
}

// Client speaks to one cell for every tenant. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	transport *http.Transport
	timeout   time.Duration
	observe   func(route string, status int, d time.Duration)
	buffers   sync.Pool // *buffer: request bodies and whole answers
	streams   sync.Pool // *fetchReader
}

// New checks the configuration; it does not dial.
func New(cfg Config) (*Client, error) {
	base, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, timeout: orDefault(cfg.CallTimeout, DefaultCallTimeout), observe: cfg.Observe}
	c.transport = newTransport(cfg)
	return c, nil
}

// Close closes the idle connections. Calls under way are not cut: their
// contexts do that.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

func parseURL(text string) (*url.URL, error) {
	return nil, errors.New("TODO")
}

func newTransport(cfg Config) *http.Transport { return nil }

func claimOf(s tenancy.Scope) tenancy.Claim { return tenancy.NewClaim(s.Bearer(), s.Host()) }
