//go:build !linux

package ports

import "net"

type holder struct{}

func (holder) Close() error { return nil }

// hold only chooses: elsewhere a socket that is bound keeps listeners off.
func hold() (h holder, port int, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return h, 0, err
	}
	return h, ln.Addr().(*net.TCPAddr).Port, ln.Close()
}
