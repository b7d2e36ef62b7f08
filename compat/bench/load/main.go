package load

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// patience bounds every load, whatever it waits for.
const patience = 3 * time.Minute

// Main runs one load and returns the exit status.
func Main(ctx context.Context, in io.Reader, out io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &steps{in: bufio.NewReader(in), out: json.NewEncoder(out)}
	if err := s.run(ctx); err != nil {
		_ = s.out.Encode(Event{Error: err.Error()})
		return 1
	}
	return 0
}

// steps is the dialogue with the one who started the load.
type steps struct {
	in  *bufio.Reader
	out *json.Encoder
}

func (s *steps) run(ctx context.Context) error {
	line, err := s.in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	var spec Spec
	if err := json.Unmarshal(line, &spec); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	kinds := map[Kind]func(context.Context, Spec, *steps) error{
		Produce: produce, Consume: consume, FanOut: fanOut, Latencies: latency, Login: login, Idle: idle, Consumers: consumers,
	}
	kind, ok := kinds[spec.Kind]
	if !ok {
		return fmt.Errorf("no load is of kind %q", spec.Kind)
	}
	if err := kind(ctx, spec, s); err != nil {
		return fmt.Errorf("%s %s: %w", spec.Kind, spec.Name, err)
	}
	return nil
}

// ready says so, and waits until the measured part may begin.
func (s *steps) ready() error {
	if err := s.out.Encode(Event{Ready: true}); err != nil {
		return err
	}
	return s.told("go")
}

// done says what was measured, and waits until nothing is looked at any more.
func (s *steps) done(r Result) error {
	if err := s.out.Encode(Event{Result: &r}); err != nil {
		return err
	}
	return s.told("end")
}

func (s *steps) told(word string) error {
	line, err := s.in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("waiting for %q: %w", word, err)
	}
	if got := strings.TrimSpace(line); got != word {
		return fmt.Errorf("was told %q, not %q", got, word)
	}
	return nil
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
