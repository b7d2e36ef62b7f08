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
	parts [3][]byte
	size  int
}

func newSource(parts ...[]byte) *source {
	s := &source{}
	for i, p := range parts {
		s.parts[i] = p
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
	s.parts = [3][]byte{}
}

type sourceReader struct {
	source *source
	off    int
}

func (r *sourceReader) Read(p []byte) (int, error) {
	s := r.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.off == s.size {
		return 0, io.EOF
	}
	off := r.off
	for _, part := range s.parts {
		if off < len(part) {
			n := copy(p, part[off:])
			r.off += n
			return n, nil
		}
		off -= len(part)
	}
	return 0, errDetached
}

func (r *sourceReader) Close() error { return nil }
