// Package ports keeps a port of 127.0.0.1 for a server that is stopped and
// started again on it. A port that is merely remembered is lost in between: the
// system may give it to any outgoing connection as its own, and that keeps
// listeners off while it is open, and for a minute after it was closed.
package ports

import (
	"net"
	"strconv"
)

// Port is kept from the moment it is chosen: no outgoing connection gets it and
// nobody who asks for any port does, whether somebody listens on it or not. Who
// names it may listen on it, in this process or another.
type Port struct {
	number int
	kept   holder
}

// Keep chooses a port that nobody has.
func Keep() (*Port, error) {
	kept, number, err := hold()
	if err != nil {
		return nil, err
	}
	return &Port{number, kept}, nil
}

// Number is the port.
func (p *Port) Number() int { return p.number }

// Addr is the port's address, as host:port.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// Listen listens on the port.
func (p *Port) Listen() (net.Listener, error) { return net.Listen("tcp", p.Addr()) }

// Close gives the port back. Who listens on it is not disturbed.
func (p *Port) Close() error { return p.kept.Close() }
