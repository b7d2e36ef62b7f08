package proxyclient

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
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

const (
	idleTimeout       = 50 * time.Second // below the 60 s at which common balancers drop an idle connection
	maxResponseHeader = 64 << 10
)

// Config says where the cell is. Only URL is required.
type Config struct {
	URL            string        // http or https, with a host; a path is kept, trailing slashes are not
	ConnectTimeout time.Duration // TCP connect, and again the TLS handshake; 0 is 3 s
	CallTimeout    time.Duration // one whole call; Fetch adds its wait; 0 is 10 s
	MaxIdlePerHost int           // idle connections kept; 0 is 512
	DialContext    func(ctx context.Context, network, addr string) (net.Conn, error)
	TLS            *tls.Config // of an https URL; nil is the system's roots
}

// Client speaks to one cell for every tenant. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	transport *http.Transport
	timeout   time.Duration
	observe   func(context.Context, Done) // nil: nobody is told
	buffers   sync.Pool                   // *buffer: request bodies and whole answers
	streams   sync.Pool                   // *fetchReader
	pushes    sync.Pool                   // *pushReader

	announced *tenancy.LRU[tenancy.Credential, tenancy.Capabilities] // by the listing, per credential
}

// New checks the configuration; it does not dial.
func New(cfg Config) (*Client, error) {
	base, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, timeout: orDefault(cfg.CallTimeout, DefaultCallTimeout)}
	c.announced = tenancy.NewLRU[tenancy.Credential, tenancy.Capabilities](maxAnnounced)
	c.transport = newTransport(cfg)
	return c, nil
}

// Done is a call that has ended, however it did.
type Done struct {
	Route  string // one of Routes
	Status int    // of HTTP; 0: no answer was read
	Began  time.Time
	Took   time.Duration // the reading of the answer included, and what a Fetch was held for
}

// Observe has fn told of every call that ends, with the context it was made in.
// fn must not block. It is set before the first call.
func (c *Client) Observe(fn func(context.Context, Done)) { c.observe = fn }

// Close closes the idle connections. Calls under way are not cut: their
// contexts do that.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// parseURL takes what can be a cell's base. Userinfo, query and fragment are
// refused: the first would be a second credential, the others would be lost.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the cell URL does not parse")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the cell URL must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the cell URL must have a host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("the cell URL must be scheme, host and path only")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// newTransport is one pool for all tenants. HTTP/1.1 only: lanes forward
// different Hosts over one pool, which on an HTTP/2 connection would be
// different authorities behind one certificate (421 at many servers), and a
// long poll must not share a connection's flow control with a 16 MiB push. No
// compression is asked for, so bodies are bounded by what is read. No proxy is
// taken from the environment.
func newTransport(cfg Config) *http.Transport {
	connect := orDefault(cfg.ConnectTimeout, DefaultConnectTimeout)
	dial := cfg.DialContext
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, connect)
			defer cancel()
			return dial(ctx, network, addr)
		},
		Protocols:              &protocols,
		TLSClientConfig:        cfg.TLS.Clone(),
		TLSHandshakeTimeout:    connect,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    orDefault(cfg.MaxIdlePerHost, DefaultMaxIdlePerHost),
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}

// claimOf panics on a zero Scope, as every use of one does.
func claimOf(s tenancy.Scope) tenancy.Claim { return tenancy.NewClaim(s.Bearer(), s.Host()) }
