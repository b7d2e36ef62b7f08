package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startPatience = time.Minute
	stopPatience  = time.Minute
)

// process is a running queen-edge.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	said   chan string // lines of stdout, until nobody takes them
	log    *os.File
	copied sync.WaitGroup
}

// launch starts the program with an environment of its own. Its stderr, and what
// nobody reads of its stdout, go to a log file that grows over its lives.
func launch(exe, logFile string, env []string, args ...string) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(exe, args...), exited: make(chan struct{}), said: make(chan string, 16), log: log}
	p.cmd.Env = append([]string{"PATH=/usr/bin:/bin", "TMPDIR=" + os.TempDir()}, env...)
	p.cmd.Stderr = log
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	p.copied.Add(1)
	go p.listen(stdout)
	go p.wait()
	return p, nil
}

func (p *process) listen(stdout io.Reader) {
	defer p.copied.Done()
	defer close(p.said)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		select {
		case p.said <- lines.Text():
		default:
			_, _ = fmt.Fprintln(p.log, lines.Text())
		}
	}
}

func (p *process) wait() {
	p.copied.Wait() // all of stdout before Wait closes it
	_ = p.cmd.Wait()
	_ = p.log.Close()
	close(p.exited)
}

// line waits for a line of stdout that begins so, and returns the rest.
func (p *process) line(prefix string) (string, error) {
	timer := time.NewTimer(startPatience)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-p.said:
			if !ok {
				return "", fmt.Errorf("%s ended before it said %q; its log is %s", filepath.Base(p.cmd.Path), prefix, p.log.Name())
			}
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return rest, nil
			}
		case <-timer.C:
			return "", fmt.Errorf("no line %q in time; the log is %s", prefix, p.log.Name())
		}
	}
}

// kill ends it as a power cut would.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// stop asks it to end, and insists in the end.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		p.kill()
		return fmt.Errorf("it did not end within %s of SIGTERM; its log is %s", stopPatience, p.log.Name())
	}
}
