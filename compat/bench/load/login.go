package load

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// login opens connections that log in and close, several at a time: for some
// seconds with one token, or once with each of many.
func login(ctx context.Context, spec Spec, s *steps) error {
	l, err := newLogger(spec.Peer)
	if err != nil {
		return err
	}
	first, err := l.login(ctx, spec.Peer.Token)
	if err != nil {
		return err
	}
	agreed := negotiated(first)
	if err := first.Close(); err != nil {
		return err
	}
	if err := s.ready(); err != nil {
		return err
	}
	begin := time.Now()
	until := begin.Add(time.Duration(spec.Seconds * float64(time.Second)))
	var next, logins atomic.Int64
	var failed failure
	var done sync.WaitGroup
	for range spec.Lanes {
		done.Go(func() {
			for failed.err() == nil {
				token := spec.Peer.Token
				if len(spec.Tokens) > 0 {
					i := next.Add(1) - 1
					if i >= int64(len(spec.Tokens)) {
						return
					}
					token = spec.Tokens[i]
				} else if time.Now().After(until) {
					return
				}
				conn, err := l.login(ctx, token)
				failed.note(err)
				if err == nil {
					failed.note(conn.Close())
					logins.Add(1)
				}
			}
		})
	}
	done.Wait()
	if err := failed.err(); err != nil {
		return err
	}
	n := logins.Load()
	return s.done(Result{Seconds: time.Since(begin).Seconds(), Count: n, Requests: 3 * n, TLS: agreed})
}

const (
	primers = 50                      // connections that are there before the first look
	settle  = 1500 * time.Millisecond // until memory is looked at
)

// idle opens connections that log in and stay.
func idle(ctx context.Context, spec Spec, s *steps) error {
	l, err := newLogger(spec.Peer)
	if err != nil {
		return err
	}
	h := &held{}
	defer h.close()
	if err := h.open(ctx, l, spec, primers); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	if err := s.ready(); err != nil {
		return err
	}
	begin := time.Now()
	if err := h.open(ctx, l, spec, spec.Count); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	return s.done(Result{Seconds: time.Since(begin).Seconds(), Count: int64(spec.Count), Requests: 3 * int64(spec.Count)})
}

// held are open connections.
type held struct {
	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func (h *held) open(ctx context.Context, l *logger, spec Spec, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	var failed failure
	var done sync.WaitGroup
	for range spec.Lanes {
		done.Go(func() {
			for failed.err() == nil && left.Add(-1) >= 0 {
				conn, err := l.login(ctx, spec.Peer.Token)
				if failed.note(err); err != nil {
					return
				}
				h.mu.Lock()
				h.conns = append(h.conns, conn)
				h.mu.Unlock()
			}
		})
	}
	done.Wait()
	return failed.err()
}

func (h *held) close() {
	for _, c := range h.conns {
		c.Close()
	}
}

// TryLogin logs in once and closes.
func TryLogin(ctx context.Context, p Peer) error {
	l, err := newLogger(p)
	if err != nil {
		return err
	}
	conn, err := l.login(ctx, p.Token)
	if err != nil {
		return err
	}
	return conn.Close()
}
