// Command load is the client side of figures that want it in a process of its own:
// logins that then say nothing, producers as fast as they are answered, one that
// sends a little. It works until its input ends, or its records are sent, and
// writes what it saw.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

const patience = 2 * time.Minute // with one answer

type load struct {
	addr, token string
	tls         *tls.Config
	size        int
}

func main() {
	role := flag.String("role", "", "idle, flood, quiet, logins or cell")
	addr := flag.String("addr", "", "host:port of the gateway")
	ca := flag.String("ca", "", "PEM of the authority to trust")
	token := flag.String("token", "", "to log in with")
	n := flag.Int("n", 1, "connections; of quiet: records")
	size := flag.Int("size", 1000, "bytes of a record")
	every := flag.Duration("every", 100*time.Millisecond, "between two records of quiet")
	behind := flag.String("behind", "", "of cell: the URL of a real one")
	echo := flag.Bool("echo", false, "of logins: the peer answers with what it is sent")
	flag.Parse()
	if *role == "cell" {
		exit(cheapCell(*behind))
		return
	}
	pem, err := os.ReadFile(*ca)
	if err == nil {
		l := &load{addr: *addr, token: *token, size: *size, tls: &tls.Config{RootCAs: x509.NewCertPool()}}
		l.tls.RootCAs.AppendCertsFromPEM(pem)
		if *role == "logins" {
			err = l.logins(*n, *echo)
		} else {
			err = l.run(*role, *n, *every)
		}
	}
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func (l *load) run(role string, n int, every time.Duration) error {
	if role == "quiet" {
		return l.quiet(n, every)
	}
	conns, err := l.login(n)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var sent atomic.Int64
	var ended atomic.Bool
	var wg sync.WaitGroup
	if role == "flood" {
		for i, c := range conns {
			wg.Go(func() {
				p := l.produce("flood", int32(i%4))
				for !ended.Load() {
					if err := p.send(c); err != nil && !ended.Load() {
						fmt.Fprintln(os.Stderr, "load:", err)
						return
					}
					sent.Add(1)
				}
			})
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Println("sent", sent.Load())
	ended.Store(true)
	for _, c := range conns {
		_ = c.Close()
	}
	wg.Wait()
	fmt.Println("left")
	return nil
}

// login opens n connections, some at a time.
func (l *load) login(n int) ([]net.Conn, error) {
	const lanes = 8
	conns := make([]net.Conn, n)
	errs := make([]error, lanes)
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for i := lane; i < n && errs[lane] == nil; i += lanes {
				conns[i], errs[lane] = l.dial()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return conns, nil
}

func (l *load) dialTLS() (net.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", l.addr, l.tls)
}

func (l *load) dial() (net.Conn, error) {
	c, err := l.dialTLS()
	if err != nil {
		return nil, err
	}
	hello := kmsg.NewPtrSASLHandshakeRequest()
	hello.Version, hello.Mechanism = 1, "PLAIN"
	token := kmsg.NewPtrSASLAuthenticateRequest()
	token.Version, token.SASLAuthBytes = 2, []byte("\x00load\x00"+l.token)
	if _, err := ask(c, hello); err != nil {
		return nil, err
	}
	resp, err := ask(c, token)
	if err != nil {
		return nil, err
	}
	if code := resp.(*kmsg.SASLAuthenticateResponse).ErrorCode; code != 0 {
		return nil, fmt.Errorf("login: code %d", code)
	}
	return c, nil
}

// ask sends a request and reads its answer.
func ask(c net.Conn, req kmsg.Request) (kmsg.Response, error) {
	return exchange(c, req, rig.Frame(req, 1, "load"))
}

func exchange(c net.Conn, req kmsg.Request, frame []byte) (kmsg.Response, error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := c.Write(frame); err != nil {
		return nil, err
	}
	b, err := rig.ReadFrame(c)
	if err != nil {
		return nil, err
	}
	return rig.Decode(req, 1, b)
}

// produce is a request of one record that is sent many times. It is made once: what
// is measured is not how fast its sender can make it.
type produce struct {
	req   *kmsg.ProduceRequest
	frame []byte
}

func (l *load) produce(topic string, partition int32) *produce {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, -1, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, rig.Batch(time.Now(), rig.NoProducer(), strings.Repeat("abcdefghij", l.size/10))
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return &produce{req, rig.Frame(req, 1, "load")}
}

// send sends it once more and reads the answer.
func (p *produce) send(c net.Conn) error {
	resp, err := exchange(c, p.req, p.frame)
	if err != nil {
		return err
	}
	if code := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
		return fmt.Errorf("produce: code %d", code)
	}
	return nil
}

// quiet sends records at a steady pace and writes what the answers took, in
// microseconds.
func (l *load) quiet(n int, every time.Duration) error {
	c, err := l.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	p := l.produce("quiet", 0)
	if err := p.send(c); err != nil { // makes the topic
		return err
	}
	var took []int64
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range n {
		<-tick.C
		began := time.Now()
		if err := p.send(c); err != nil {
			return err
		}
		took = append(took, time.Since(began).Microseconds())
	}
	slices.Sort(took)
	for _, us := range took {
		fmt.Println(us)
	}
	return nil
}
