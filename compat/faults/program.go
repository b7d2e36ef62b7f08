package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// program is a client's program under way. What it is told goes to its stdin;
// what it says comes as lines.
type program struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	log    *os.File
	exited chan struct{}
	err    error // of the process, once it exited
}

// startProgram runs the `run` of a folder. take gets its lines, one after the
// other.
func startProgram(dir, logFile string, env []string, take func(line string)) (*program, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	p := &program{cmd: exec.Command("./run"), log: log, exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, append(os.Environ(), env...), log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.stdin, err = p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	go p.listen(stdout, take)
	return p, nil
}

func (p *program) listen(stdout io.Reader, take func(line string)) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		take(lines.Text())
	}
	p.err = p.cmd.Wait()
	_ = p.log.Close()
	close(p.exited)
}

// finish lets it close its client and end.
func (p *program) finish(patience time.Duration) error {
	_ = p.stdin.Close()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.kill()
		return fmt.Errorf("the client did not close; its log is %s", p.log.Name())
	}
	if p.err != nil {
		return p.died()
	}
	return nil
}

func (p *program) died() error {
	return fmt.Errorf("the client died: %v; its log is %s", p.err, p.log.Name())
}

// kill ends it with all it has started.
func (p *program) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.exited
}
