package proxyclient

import (
	"errors"
	"io"
	"sync"
)

var errDetached = errors.New("the call is over")

// source lends a request's bytes to the transport. A transport may go on
// reading a body after the call has returned (an early refusal, a cancelled
// context), and these bytes go back to a pool where another tenant's call
// finds them: detach takes them away first.
type source struct {
	mu    sync.Mutex // guards parts
	parts [][]byte
	size  int
}

func newSource(parts ...[]byte) *source {
	s := &source{parts: parts}
	for _, p := range parts {
		s.size += len(p)
	}
	return s
}

// open makes a reader from the first byte.
func (s *source) open() (io.ReadCloser, error) { return &sourceReader{source: s}, nil }

// detach ends all reading; the bytes are the caller's again when it returns.
func (s *source) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = nil
}

// sourceReader fills what it is given across the parts: what it returns is
// written to the socket in one piece.
type sourceReader struct {
	source *source
	part   int // being read
	off    int // in it
}

func (r *sourceReader) Read(p []byte) (int, error) {
	s := r.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts == nil {
		return 0, errDetached
	}
	n := 0
	for r.part < len(s.parts) {
		part := s.parts[r.part]
		copied := copy(p[n:], part[r.off:])
		n, r.off = n+copied, r.off+copied
		if r.off < len(part) {
			return n, nil
		}
		r.part, r.off = r.part+1, 0
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *sourceReader) Close() error { return nil }
