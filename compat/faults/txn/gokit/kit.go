// Package gokit is what the transactional programs in Go have in common: what
// they are given, and the lines that they say (TRANSACTIONS.md).
package gokit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Job is what a program is given.
type Job struct {
	Bootstrap, Token, Input, Output, Group, ID string

	Timeout time.Duration // of its transactions
	Stop    chan struct{} // closed at the end of stdin

	mu  sync.Mutex // guards out
	out *bufio.Writer
}

// Start reads what the program is given.
func Start() (*Job, error) {
	ms, err := strconv.Atoi(os.Getenv("QE_FAULTS_TXN_TIMEOUT_MS"))
	if err != nil {
		return nil, err
	}
	j := &Job{
		Bootstrap: os.Getenv("QE_FAULTS_BOOTSTRAP"), Token: os.Getenv("QE_FAULTS_TOKEN"),
		Input: os.Getenv("QE_FAULTS_INPUT"), Output: os.Getenv("QE_FAULTS_OUTPUT"),
		Group: os.Getenv("QE_FAULTS_GROUP"), ID: os.Getenv("QE_FAULTS_TXN_ID"),
		Timeout: time.Duration(ms) * time.Millisecond,
		Stop:    make(chan struct{}), out: bufio.NewWriter(os.Stdout),
	}
	go j.watch()
	return j, nil
}

func (j *Job) watch() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(j.Stop)
}

// Stopping reports the end of stdin.
func (j *Job) Stopping() bool {
	select {
	case <-j.Stop:
		return true
	default:
		return false
	}
}

// Say says a line.
func (j *Job) Say(words ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = fmt.Fprintln(j.out, append([]any{time.Now().UnixMicro()}, words...)...)
	_ = j.out.Flush()
}

// Classes of what an application meets.
const (
	Retry  = "retry"  // it asks the same again
	Abort  = "abort"  // it aborts and goes on
	Fenced = "fenced" // somebody else has its transactional id
	Fatal  = "fatal"  // it goes on with a new producer
)

// Met says what a call of a transaction came to. A code is one word.
func (j *Job) Met(life, number int, call, class, code string) {
	j.Say("met", life, number, call, class, strings.Join(strings.Fields(code), "_"))
}

// Txn is one transaction of a program.
type Txn struct {
	Life, Number int
	writes       map[int32][]string
	offsets      map[int32]int64 // the next ones
}

// NewTxn begins one.
func NewTxn(life, number int) *Txn {
	return &Txn{Life: life, Number: number, writes: make(map[int32][]string), offsets: make(map[int32]int64)}
}

// Add transforms a record of the input, and says what to write to the same
// partition of the output.
func (t *Txn) Add(j *Job, partition int32, offset int64, value []byte) string {
	t.writes[partition] = append(t.writes[partition], string(value))
	t.offsets[partition] = offset + 1
	return fmt.Sprintf("%s %s/%d/%d", value, j.ID, t.Life, t.Number)
}

// Offsets are the next ones to read, by partition.
func (t *Txn) Offsets() map[int32]int64 { return t.offsets }

// Commit says that the commit is asked for now.
func (t *Txn) Commit(j *Job) {
	var writes, offsets []string
	for _, p := range partitions(t.writes) {
		writes = append(writes, fmt.Sprintf("%d:%s", p, strings.Join(t.writes[p], ",")))
		offsets = append(offsets, fmt.Sprintf("%d:%d", p, t.offsets[p]))
	}
	j.Say("commit", t.Life, t.Number, strings.Join(writes, ";"), strings.Join(offsets, ";"))
}

func partitions(m map[int32][]string) []int32 {
	var list []int32
	for p := range m {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}
