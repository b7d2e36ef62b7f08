package peer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof" // the default mux has them
	"path/filepath"

	"github.com/queen-mq/queen-edge/compat/bench/load"
)

const maxEcho = 64 << 10

// bare is crypto/tls and nothing more: what a login costs at least, and an idle
// connection.
type bare struct {
	at   Place
	node *Process
	addr string
	side string // address of its profiles
}

func startBare(ctx context.Context, at Place) (*bare, error) {
	b := &bare{at: at}
	var err error
	if b.node, err = Start(ctx, Command{
		Name: "bare", Dir: at.Dir, Log: filepath.Join(at.Dir, "bare.log"), Args: []string{at.Self, "bare", at.Identity.Chain, at.Identity.Key},
	}); err != nil {
		return nil, err
	}
	port, err := b.node.Line(ctx, "bare: ")
	if err != nil {
		b.Stop()
		return nil, err
	}
	b.addr = net.JoinHostPort(host, port)
	if b.side, err = b.node.Line(ctx, "bare: profiles on "); err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

// Target implements Peer.
func (b *bare) Target() load.Peer {
	return load.Peer{Addr: b.addr, CA: b.at.Identity.CA, Token: b.at.Identity.Password, Echo: true}
}

// Processes implements Peer.
func (b *bare) Processes() []*Process { return []*Process{b.node} }

// Stop implements Peer.
func (b *bare) Stop() { b.node.kill() }

// ServeBare answers every frame with itself, until it is killed.
func ServeBare(out io.Writer, chain, key string) error {
	pair, err := tls.LoadX509KeyPair(chain, key)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "bare: %d\n", ln.Addr().(*net.TCPAddr).Port); err != nil {
		return err
	}
	side, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "bare: profiles on %s\n", side.Addr()); err != nil {
		return err
	}
	go func() { _ = http.Serve(side, nil) }() // nobody asks where none are wanted
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}}
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go echo(tls.Server(conn, cfg))
	}
}

func echo(conn net.Conn) {
	defer conn.Close()
	var head [4]byte
	for {
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > maxEcho {
			return
		}
		frame := make([]byte, 4+size)
		copy(frame, head[:])
		if _, err := io.ReadFull(conn, frame[4:]); err != nil {
			return
		}
		if _, err := conn.Write(frame); err != nil {
			return
		}
	}
}
