package doctor

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fake is a broker that does what no gateway does. on may answer a request, or
// close the connection by returning nil.
type fake struct {
	ln   net.Listener
	on   func(req kmsg.Request) kmsg.Response
	wg   sync.WaitGroup
	mu   sync.Mutex // guards the fields below
	open map[net.Conn]struct{}
	got  []int16 // keys of requests, in order of arrival
}

func startFake(t *testing.T, on func(f *fake, req kmsg.Request) kmsg.Response) *fake {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{ln: ln, open: map[net.Conn]struct{}{}}
	f.on = func(req kmsg.Request) kmsg.Response { return on(f, req) }
	f.wg.Add(1)
	go f.accept()
	t.Cleanup(f.close)
	return f
}

func (f *fake) close() {
	_ = f.ln.Close()
	f.mu.Lock()
	for c := range f.open {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

func (f *fake) addr() address {
	host, port, _ := net.SplitHostPort(f.ln.Addr().String())
	return address{host, port}
}

func (f *fake) port() int32 { n, _ := strconv.Atoi(f.addr().port); return int32(n) }

// keys are the requests that came, by API key.
func (f *fake) keys() []int16 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]int16(nil), f.got...)
}

func (f *fake) accept() {
	defer f.wg.Done()
	for {
		c, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.open[c] = struct{}{}
		f.mu.Unlock()
		f.wg.Add(1)
		go f.serve(c)
	}
}

func (f *fake) serve(c net.Conn) {
	defer f.wg.Done()
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(size[:])
		if n > 1<<20 { // a TLS hello
			return
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil || len(b) < 10 {
			return
		}
		req := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(b)))
		req.SetVersion(int16(binary.BigEndian.Uint16(b[2:])))
		if err := req.ReadFrom(b[10+binary.BigEndian.Uint16(b[8:]):]); err != nil {
			return
		}
		f.mu.Lock()
		f.got = append(f.got, req.Key())
		f.mu.Unlock()
		resp := f.on(req)
		if resp == nil {
			return
		}
		body := resp.AppendTo(binary.BigEndian.AppendUint32(make([]byte, 4), binary.BigEndian.Uint32(b[4:])))
		binary.BigEndian.PutUint32(body, uint32(len(body)-4))
		if _, err := c.Write(body); err != nil {
			return
		}
	}
}

// ordinary answers as a broker that asks for no login and names itself.
func ordinary(f *fake, req kmsg.Request) kmsg.Response {
	switch req := req.(type) {
	case *kmsg.ApiVersionsRequest:
		resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
		for key := range int16(43) {
			k := kmsg.NewApiVersionsResponseApiKey()
			k.ApiKey, k.MaxVersion = key, 20
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
		return resp
	case *kmsg.SASLHandshakeRequest:
		resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.ErrorCode = 34
		return resp
	case *kmsg.MetadataRequest:
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		resp.Brokers = append(resp.Brokers, broker(0, f.addr().host, f.port()))
		return resp
	case *kmsg.OffsetCommitRequest:
		resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
		t := kmsg.NewOffsetCommitResponseTopic()
		t.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, 1)
		resp.Topics = append(resp.Topics, t)
		return resp
	case *kmsg.DeleteGroupsRequest:
		resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
		resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, 1)
		return resp
	}
	return req.ResponseKind()
}

func broker(id int32, host string, port int32) kmsg.MetadataResponseBroker {
	b := kmsg.NewMetadataResponseBroker()
	b.NodeID, b.Host, b.Port = id, host, port
	return b
}
