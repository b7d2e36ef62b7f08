package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/edge/batch"
)

// drainGrace is what the gateway of the test below is given to end.
const drainGrace = 90 * time.Second

// talk is a connection of raw frames.
type talk struct {
	net.Conn
	next int32
}

func dialTalk(addr string) (*talk, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &talk{Conn: conn}, conn.SetDeadline(time.Now().Add(patience))
}

func (c *talk) send(reqs ...kmsg.Request) error {
	var b []byte
	for _, req := range reqs {
		c.next++
		b = append(b, kmsg.NewRequestFormatter(kmsg.FormatterClientID("drain")).AppendRequest(nil, req, c.next)...)
	}
	_, err := c.Write(b)
	return err
}

// receive reads an answer's body, its correlation id aside.
func (c *talk) receive() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	return b[4:], nil
}

func (c *talk) ask(req kmsg.Request) ([]byte, error) {
	if err := c.send(req); err != nil {
		return nil, err
	}
	return c.receive()
}

func handshake() kmsg.Request {
	req := kmsg.NewPtrSASLHandshakeRequest()
	req.Version, req.Mechanism = 1, "PLAIN"
	return req
}

func (c *talk) login(key string) error {
	if _, err := c.ask(handshake()); err != nil {
		return err
	}
	auth := kmsg.NewPtrSASLAuthenticateRequest()
	auth.Version, auth.SASLAuthBytes = 1, []byte("\x00drain\x00"+key)
	body, err := c.ask(auth)
	if err == nil && binary.BigEndian.Uint16(body) != 0 {
		err = fmt.Errorf("login: code %d", binary.BigEndian.Uint16(body))
	}
	return err
}

// produceOne is a Produce of one record.
func produceOne(acks int16, topic string, partition int32) kmsg.Request {
	var w batch.Writer
	w.Reset(nil)
	w.Add(&batch.Record{Timestamp: 1, Value: []byte("v")})
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, append([]byte(nil), w.Finish()...)
	topics := kmsg.NewProduceRequestTopic()
	topics.Topic, topics.Partitions = topic, []kmsg.ProduceRequestTopicPartition{p}
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 7, acks, 30_000
	req.Topics = []kmsg.ProduceRequestTopic{topics}
	return req
}

func pollForEver(topic string) kmsg.Request {
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes = 1 << 20
	topics := kmsg.NewFetchRequestTopic()
	topics.Topic, topics.Partitions = topic, []kmsg.FetchRequestTopicPartition{p}
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 6, 300_000, 1, 1<<20
	req.Topics = []kmsg.FetchRequestTopic{topics}
	return req
}

// B7, a process under load gets SIGTERM: it says so at /readyz before anything
// else, answers every produce that it does, stores every acks=0 record that was
// sent, and is gone in its grace.
func TestSIGTERMUnderLoad(t *testing.T) {
	cell := launch(t, nil, "cell", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--bootstrap", "acme")
	key := cell.line(t, "cell: its key, shown this once: ")
	env := []string{
		"QUEEN_URL=" + cell.line(t, "cell: listening on "), "QUEEN_KAFKA_SASL=plain", "QUEEN_KAFKA_DEFAULT_PARTITIONS=20",
		"QUEEN_KAFKA_LOGIN_TIMEOUT_MS=120000", fmt.Sprint("QUEEN_KAFKA_DRAIN_GRACE_MS=", drainGrace.Milliseconds()),
	}
	side := freeAddr(t)
	gateway := launch(t, append(env, "QUEEN_KAFKA_ADMIN_ADDR="+side), "serve", "--addr", "127.0.0.1:0")
	addr := gateway.line(t, "serve: listening on ")
	gateway.line(t, "serve: side listener on ")
	makeDrainTopics(t, addr, key)

	l := &drainLoad{addr: addr, key: key, ready: "http://" + side + "/readyz"}
	for range 100 {
		l.start(l.halfOpen)
		l.start(l.idle)
		l.start(l.longPoll)
	}
	for i := range int32(20) {
		l.start(func() error { return l.acked(i) })
		l.start(func() error { return l.unacked(i) })
	}
	eventually(t, "all are at work", func() bool { return l.atWork.Load() == 340 || l.failed() != nil })
	if err := l.failed(); err != nil {
		gateway.stop(t) // the log is whole then
		t.Fatalf("%v\n%s", err, gateway.stderr)
	}
	if status := l.readyz(); status != http.StatusOK {
		t.Fatalf("/readyz: %d before", status)
	}
	begun := time.Now()
	l.told.Store(true)
	if err := gateway.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := gateway.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	took := time.Since(begun)
	l.all.Wait()
	if err := l.failed(); err != nil {
		t.Error(err)
	}
	if took >= drainGrace {
		t.Errorf("gone after %v, beyond its grace of %v", took, drainGrace)
	}

	after := launch(t, env, "serve", "--addr", "127.0.0.1:0")
	ends := drainEnds(t, after.line(t, "serve: listening on "), key)
	var answered, sent int64
	for i := range int32(20) {
		if end, want := ends["acked"][i], l.answered[i].Load(); end != want {
			t.Errorf("acks=all, producer %d: %d records are stored and %d answered", i, end, want)
		}
		if end, want := ends["unacked"][i], l.sent[i].Load(); end != want {
			t.Errorf("acks=0, producer %d: %d records are stored of %d that were sent", i, end, want)
		}
		answered, sent = answered+l.answered[i].Load(), sent+l.sent[i].Load()
	}
	t.Logf("gone after %v; %d records with acks=all, %d with acks=0", took, answered, sent)
	after.stop(t)
	cell.stop(t)
}

// freeAddr is an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.9.0.1:0") // an address of the test's own
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// drainLoad is 340 connections at work.
type drainLoad struct {
	addr, key, ready string
	all              sync.WaitGroup
	atWork           atomic.Int64
	told             atomic.Bool // SIGTERM is on its way
	answered, sent   [20]atomic.Int64
	err              atomic.Pointer[error]
}

func (l *drainLoad) failed() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// start runs a connection until it ends, and keeps the first failure of all.
func (l *drainLoad) start(run func() error) {
	l.all.Go(func() {
		if err := run(); err != nil {
			l.err.CompareAndSwap(nil, &err)
		}
	})
}

func (l *drainLoad) readyz() int {
	resp, err := http.Get(l.ready)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// ended judges the end of a connection: it comes after SIGTERM, and after
// /readyz has said so. The side listener may be gone by then with the process.
func (l *drainLoad) ended(what string, err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %v, want the end of the stream", what, err)
	}
	if status := l.readyz(); !l.told.Load() || status == http.StatusOK {
		return fmt.Errorf("%s has ended while /readyz says %d", what, status)
	}
	return nil
}

func (l *drainLoad) halfOpen() error {
	c, err := dialTalk(l.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ask(handshake()); err != nil {
		return err
	}
	l.atWork.Add(1)
	_, err = c.receive()
	return l.ended("a half-open login", err)
}

func (l *drainLoad) member() (*talk, error) {
	c, err := dialTalk(l.addr)
	if err == nil {
		err = c.login(l.key)
	}
	return c, err
}

func (l *drainLoad) idle() error {
	c, err := l.member()
	if err != nil {
		return err
	}
	defer c.Close()
	l.atWork.Add(1)
	_, err = c.receive()
	return l.ended("an idle connection", err)
}

func (l *drainLoad) longPoll() error {
	c, err := l.member()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.send(pollForEver("polled")); err != nil {
		return err
	}
	l.atWork.Add(1)
	for { // a cell's long poll is shorter than the client's
		if _, err := c.receive(); err != nil {
			return l.ended("a long poll without its answer", err)
		}
		if l.told.Load() {
			break
		}
		if err := c.send(pollForEver("polled")); err != nil {
			return err
		}
	}
	_, err = c.receive()
	return l.ended("a long poll", err)
}

// acked keeps five requests under way and counts answers.
func (l *drainLoad) acked(i int32) error {
	c, err := l.member()
	if err != nil {
		return err
	}
	defer c.Close()
	req := produceOne(-1, "acked", i)
	for range 5 {
		if err := c.send(req); err != nil {
			return err
		}
	}
	for {
		b, err := c.receive()
		if err != nil {
			return l.ended("a producer with acks=all", err)
		}
		resp := kmsg.NewPtrProduceResponse()
		resp.Version = 7
		if err := resp.ReadFrom(b); err != nil {
			return err
		}
		if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
			return fmt.Errorf("acks=all: code %d", code)
		}
		if l.answered[i].Add(1) == 20 {
			l.atWork.Add(1)
		}
		_ = c.send(req) // a close is seen by receive
	}
}

// unacked sends five records, and a request whose answer says that they were
// read, over and over. It stops when it sees the end, as clients do.
func (l *drainLoad) unacked(i int32) error {
	c, err := l.member()
	if err != nil {
		return err
	}
	defer c.Close()
	one := produceOne(0, "unacked", i)
	api := kmsg.NewPtrApiVersionsRequest()
	for {
		if err := c.send(one, one, one, one, one, api); err != nil {
			return err
		}
		if l.sent[i].Add(5) == 20 {
			l.atWork.Add(1)
		}
		if _, err := c.receive(); err != nil {
			return l.ended("a producer with acks=0", err)
		}
	}
}

func drainAdmin(t *testing.T, addr, key string) (*kadm.Client, context.Context) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.SASL(plain.Auth{User: "drain", Pass: key}.AsMechanism()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return kadm.NewClient(c), ctx
}

func makeDrainTopics(t *testing.T, addr, key string) {
	t.Helper()
	admin, ctx := drainAdmin(t, addr, key)
	made, err := admin.CreateTopics(ctx, 20, 1, nil, "acked", "unacked", "polled")
	if err == nil {
		err = made.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// drainEnds are the high watermarks of the producers' topics.
func drainEnds(t *testing.T, addr, key string) map[string]map[int32]int64 {
	t.Helper()
	admin, ctx := drainAdmin(t, addr, key)
	listed, err := admin.ListEndOffsets(ctx, "acked", "unacked")
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]map[int32]int64{"acked": {}, "unacked": {}}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Topic][o.Partition] = o.Offset })
	return ends
}
