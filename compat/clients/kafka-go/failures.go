package main

import (
	"errors"
	"fmt"
	"sync"
)

// failures keeps the last thing that a reader logged as an error: it retries
// and says so there only.
type failures struct {
	mu   sync.Mutex
	last string
}

func (f *failures) Printf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = fmt.Sprintf(format, args...)
}

func (f *failures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == "" {
		return nil
	}
	return errors.New(f.last)
}
