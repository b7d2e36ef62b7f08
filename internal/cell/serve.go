package cell

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// The server's patience. The write timeout covers what the server writes by
// itself; an answer's parts have deadlines of their own, as has a body.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	writeTimeout      = 2 * time.Minute
	maxHeaderBytes    = 32 << 10

	// drainTimeout is how long running requests may take once the cell is
	// told to end. Parked polls answer at once.
	drainTimeout = 10 * time.Second
)

// Serve answers on ln until ctx ends, then lets running requests finish. It
// closes ln, and returns nil after a clean end. Polls do not park any more
// after it.
func (c *Cell) Serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler:           c.proxy,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          zap.NewStdLog(c.log),
	}
	defer c.serveAdmin()()
	ended := make(chan error, 1)
	go accept(server, ln, ended)
	select {
	case err := <-ended:
		return fmt.Errorf("cell: %w", err)
	case <-ctx.Done():
	}
	c.proxy.Drain()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := server.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("cell: requests were cut off: %w", err), server.Close())
	}
	<-ended
	return err
}

// accept runs the server until it is shut down, or its listener fails.
func accept(server *http.Server, ln net.Listener, ended chan<- error) {
	ended <- server.Serve(ln)
}
