package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// partitions are those of a topic: record n goes to partition n mod partitions.
// They are as many as requests a client may have under way, since librdkafka
// keeps to one of a partition.
const partitions = 5

// What stands for the offset of a record that was not acknowledged, and of one
// that was acknowledged without.
const (
	unacked  = -2
	noOffset = -1
)

// producer is a running producer program: a client library that writes a numbered
// sequence as far as it is told to.
type producer struct {
	*program

	mu      sync.Mutex // guards the fields below
	offsets []int64    // by number
	acked   int
	failed  []string
	odd     []string // lines that say nothing known
	done    bool     // it said that it has closed its client
	changed chan struct{}
}

// startProducer runs the `run` of a client's folder.
func startProducer(dir, logFile string, env []string) (p *producer, err error) {
	p = &producer{changed: make(chan struct{})}
	p.program, err = startProgram(dir, logFile, env, p.take)
	return p, err
}

// take notes what one line says.
func (p *producer) take(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	words := strings.SplitN(line, " ", 3)
	number := -1
	if len(words) > 1 {
		if n, err := strconv.Atoi(words[1]); err == nil {
			number = n
		}
	}
	switch {
	case line == "ready":
	case line == "done":
		p.done = true
	case words[0] == "acked" && number >= 0 && len(words) == 3:
		p.ack(number, words[2], line)
	case words[0] == "failed" && number >= 0:
		p.failed = append(p.failed, line)
	default:
		p.odd = append(p.odd, line)
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *producer) ack(number int, text, line string) {
	offset, err := strconv.ParseInt(text, 10, 64)
	for len(p.offsets) <= number {
		p.offsets = append(p.offsets, unacked)
	}
	if err != nil || p.offsets[number] != unacked {
		p.odd = append(p.odd, line)
		return
	}
	p.offsets[number] = max(offset, noOffset)
	p.acked++
}

// upTo lets it write the records before a number.
func (p *producer) upTo(n int) error {
	_, err := fmt.Fprintln(p.stdin, n)
	return err
}

// settled is how many records have their outcome.
func (p *producer) settled() (n int, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked + len(p.failed), p.changed
}

// wait waits for so many outcomes, or for struck. Patience is how long nothing
// may happen.
func (p *producer) wait(n int, struck <-chan struct{}, patience time.Duration) (fired bool, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		have, changed := p.settled()
		if have >= n {
			return false, nil
		}
		select {
		case <-struck:
			return true, nil
		case <-changed:
			timer.Reset(patience)
		case <-p.exited:
			return false, p.died()
		case <-timer.C:
			return false, fmt.Errorf("nothing for %s with %d of %d records settled; the client's log is %s", patience, have, n, p.log.Name())
		}
	}
}

// finish lets it close its client and end.
func (p *producer) finish(patience time.Duration) error {
	if err := p.program.finish(patience); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		return fmt.Errorf("the client did not say that it is done; its log is %s", p.log.Name())
	}
	return nil
}

// client is a folder with a program.
type client struct {
	name     string
	version  string // of the library, where one program stands for several
	dir      string
	inFlight int // Produce requests it may have under way on a connection
}

// clients are those there are. From an idempotent producer sarama insists on one
// request at a time, and kafka-python keeps to one batch of a partition.
func clients(dir string) []client {
	list := []client{
		{name: "franz-go", inFlight: 5},
		{name: "java", inFlight: 5},
		{name: "confluent-kafka-python", inFlight: 5},
		{name: "sarama", inFlight: 1},
		{name: "kafka-python", inFlight: 1},
	}
	for i := range list {
		list[i].dir = filepath.Join(dir, list[i].name)
	}
	return list
}

// install runs the client's deps.
func (c client) install(env []string) error {
	cmd := exec.Command("./deps")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, append(os.Environ(), env...), os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: deps: %w", c.name, err)
	}
	return nil
}
