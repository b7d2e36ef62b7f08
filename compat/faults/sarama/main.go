// Command sarama is an idempotent producer program of compat/faults.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/IBM/sarama"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// config is what an idempotent producer of sarama must have, and patience: by
// itself it gives a record up after three retries within 300 ms.
func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.ClientID = "sarama"
	c.Net.SASL.Enable, c.Net.SASL.Mechanism, c.Net.SASL.Version = true, sarama.SASLTypePlaintext, sarama.SASLHandshakeV1
	c.Net.SASL.User, c.Net.SASL.Password = "sarama", os.Getenv("QE_FAULTS_TOKEN")
	c.Net.MaxOpenRequests = 1
	c.Producer.Idempotent = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Retry.Max = 1000
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Flush.MaxMessages = 40 // so that there are many batches
	return c
}

func run() error {
	sarama.Logger = logger{}
	partitions, err := strconv.Atoi(os.Getenv("QE_FAULTS_PARTITIONS"))
	if err != nil {
		return err
	}
	p, err := sarama.NewAsyncProducer([]string{os.Getenv("QE_FAULTS_BOOTSTRAP")}, config())
	if err != nil {
		return err
	}
	out := &report{w: bufio.NewWriter(os.Stdout)}
	out.say("ready")
	var outcomes sync.WaitGroup
	outcomes.Add(2)
	go successes(p, out, &outcomes)
	go failures(p, out, &outcomes)
	padding := " " + strings.Repeat("x", 100)
	next := 0
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		end, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		for ; next < end; next++ {
			p.Input() <- &sarama.ProducerMessage{
				Topic: os.Getenv("QE_FAULTS_TOPIC"), Partition: int32(next % partitions),
				Value: sarama.StringEncoder(strconv.Itoa(next) + padding), Metadata: next,
			}
		}
	}
	p.AsyncClose()
	outcomes.Wait()
	out.say("done")
	return nil
}

func successes(p sarama.AsyncProducer, out *report, outcomes *sync.WaitGroup) {
	defer outcomes.Done()
	for m := range p.Successes() {
		out.say("acked", m.Metadata, m.Offset)
	}
}

func failures(p sarama.AsyncProducer, out *report, outcomes *sync.WaitGroup) {
	defer outcomes.Done()
	for e := range p.Errors() {
		out.say("failed", e.Msg.Metadata, e.Err)
	}
}

// logger sends what sarama says to stderr.
type logger struct{}

func (logger) Print(v ...any)                 { fmt.Fprint(os.Stderr, v...) }
func (logger) Printf(format string, v ...any) { fmt.Fprintf(os.Stderr, format, v...) }
func (logger) Println(v ...any)               { fmt.Fprintln(os.Stderr, v...) }

// report writes lines as they come.
type report struct {
	mu sync.Mutex // guards w
	w  *bufio.Writer
}

func (r *report) say(words ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintln(r.w, words...)
	_ = r.w.Flush()
}
