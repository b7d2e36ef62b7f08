package doctor

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/cmd/queen-edge/internal/steps"
	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

// patience is a step's time where a test does not wait for its end.
const patience = time.Minute

func examine(t *testing.T, a address, change func(*Options)) *steps.Report {
	t.Helper()
	o := Options{Host: a.host, Port: a.port, Mechanism: sasl.Plain, Plaintext: true, Timeout: patience}
	if change != nil {
		change(&o)
	}
	return Run(t.Context(), o)
}

// of are the findings of one step.
func of(r *steps.Report, k steps.Kind) []steps.Step {
	return slices.DeleteFunc(slices.Clone(r.Steps), func(s steps.Step) bool { return s.Step != k.Name })
}

// Every broker that is named is dialled: those after one that fails as well.
func TestEachBrokerIsDialled(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := int32(gone.Addr().(*net.TCPAddr).Port)
	_ = gone.Close()
	alive := startFake(t, ordinary)
	first := startFake(t, func(f *fake, req kmsg.Request) kmsg.Response {
		resp := ordinary(f, req)
		if m, ok := resp.(*kmsg.MetadataResponse); ok {
			m.Brokers = []kmsg.MetadataResponseBroker{broker(1, "127.0.0.1", dead), broker(2, "127.0.0.1", alive.port())}
		}
		return resp
	})
	r := examine(t, first.addr(), nil)
	got := of(r, advertised)
	if len(got) != 2 || got[0].Status != steps.Failed || got[0].Cause != causeRefused || got[0].At != tcp.Name || !strings.HasPrefix(got[0].About, "broker 1 at ") ||
		got[1].Status != steps.OK || !strings.HasPrefix(got[1].About, "broker 2 at ") {
		t.Errorf("%+v", got)
	}
	if r.FailedStep != advertised.Name || of(r, commit)[0].Status != steps.Skipped {
		t.Errorf("%+v", r)
	}
}

// A commit whose answer is lost may have been done: its group is deleted all the
// same, over another connection.
func TestALostCommitIsTakenBack(t *testing.T) {
	f := startFake(t, func(f *fake, req kmsg.Request) kmsg.Response {
		if _, ok := req.(*kmsg.OffsetCommitRequest); ok {
			return nil
		}
		return ordinary(f, req)
	})
	r := examine(t, f.addr(), nil)
	if s := of(r, commit)[0]; s.Status != steps.Failed || s.Cause != causeClosed || strings.Contains(s.Next, "left behind") {
		t.Errorf("%+v", s)
	}
	deleted := kmsg.NewDeleteGroupsRequest()
	if keys := f.keys(); keys[len(keys)-1] != deleted.Key() {
		t.Errorf("requests %v: the group is left", keys)
	}
}

// A group that stays is told, with its name.
func TestAGroupLeftBehindIsTold(t *testing.T) {
	group := ""
	f := startFake(t, func(f *fake, req kmsg.Request) kmsg.Response {
		resp := ordinary(f, req)
		if d, ok := resp.(*kmsg.DeleteGroupsResponse); ok {
			group = req.(*kmsg.DeleteGroupsRequest).Groups[0]
			d.Groups[0].ErrorCode = 15
		}
		return resp
	})
	r := examine(t, f.addr(), nil)
	if s := of(r, commit)[0]; !r.OK || s.Status != steps.Warning || s.Cause != causeLeftBehind || !strings.Contains(s.Seen, group) {
		t.Errorf("%+v", s)
	}
}

// What a peer says goes to a terminal: neither a token it sends back nor an
// escape sequence may get there.
func TestAPeersWordsAreCleaned(t *testing.T) {
	const token = "qk_live_secret"
	f := startFake(t, func(f *fake, req kmsg.Request) kmsg.Response {
		resp := ordinary(f, req)
		switch resp := resp.(type) {
		case *kmsg.SASLHandshakeResponse:
			resp.ErrorCode = 0
		case *kmsg.SASLAuthenticateResponse:
			said := "no \x1b[31m" + string(req.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes) + "\n" + strings.Repeat("x", 10_000)
			resp.ErrorCode, resp.ErrorMessage = 58, &said
		}
		return resp
	})
	r := examine(t, f.addr(), func(o *Options) { o.Token = tenancy.NewSecret(token) })
	text, err := json.Marshal(r)
	if err != nil || r.Cause != causeBadToken {
		t.Fatalf("%v %+v", err, r)
	}
	if strings.Contains(string(text), token) || strings.Contains(string(text), `\u001b`) || len(of(r, login)[0].Seen) > 1000 {
		t.Errorf("%s", text)
	}
}

// Peers that are no gateway.
func TestPeersThatAreNoGateway(t *testing.T) {
	saying := func(text string) func(*fake) {
		return func(f *fake) {
			f.on = func(kmsg.Request) kmsg.Response {
				f.mu.Lock()
				defer f.mu.Unlock()
				for c := range f.open {
					_, _ = io.WriteString(c, text)
				}
				return nil
			}
		}
	}
	answering := func(change func(kmsg.Response)) func(*fake) {
		return func(f *fake) {
			f.on = func(req kmsg.Request) kmsg.Response {
				resp := ordinary(f, req)
				change(resp)
				return resp
			}
		}
	}
	for name, test := range map[string]struct {
		make        func(*fake)
		step, cause string
	}{
		"a banner":                 {saying("SSH-2.0-OpenSSH_9.9\r\n"), "kafka", causeNotKafka},
		"a short frame":            {saying("\x00\x00\x00\x02ab"), "kafka", causeNotKafka},
		"an endless frame":         {saying("\x7f\xff\xff\xff"), "kafka", causeNotKafka},
		"another answer":           {saying("\x00\x00\x00\x04\x00\x00\x00\x63"), "kafka", causeNotKafka},
		"half an answer":           {saying("\x00\x00\x00\x40\x00\x00\x00\x01"), "kafka", causeClosed},
		"nothing":                  {saying(""), "kafka", causeClosed},
		"ApiVersions refused":      {answering(func(r kmsg.Response) { setVersions(r, 35, 0) }), "kafka", causeNotKafka},
		"a broker of other things": {answering(func(r kmsg.Response) { setVersions(r, 0, 2) }), "metadata", causeTooOld},
		"no brokers": {answering(func(r kmsg.Response) {
			if m, ok := r.(*kmsg.MetadataResponse); ok {
				m.Brokers = nil
			}
		}), "metadata", causeNoBroker},
		"a coordinator that nobody knows": {answering(func(r kmsg.Response) {
			if c, ok := r.(*kmsg.FindCoordinatorResponse); ok {
				c.NodeID = 7
			}
		}), "commit", causeNoBroker},
		"an empty answer to a commit": {answering(func(r kmsg.Response) {
			if c, ok := r.(*kmsg.OffsetCommitResponse); ok {
				c.Topics = nil
			}
		}), "commit", causeNotKafka},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t, ordinary)
			test.make(f)
			if r := examine(t, f.addr(), nil); r.FailedStep != test.step || r.Cause != test.cause {
				t.Errorf("named %s (%s), want %s (%s): %+v", r.FailedStep, r.Cause, test.step, test.cause, r.Steps)
			}
		})
	}
}

func setVersions(r kmsg.Response, code, most int16) {
	if v, ok := r.(*kmsg.ApiVersionsResponse); ok {
		v.ErrorCode = code
		for i := range v.ApiKeys {
			v.ApiKeys[i].MaxVersion = most
		}
	}
}

// A peer that says nothing ends the step when its time is over, and a caller
// that gives up ends it at once.
func TestStepsEnd(t *testing.T) {
	t.Run("in their time", func(t *testing.T) {
		t.Parallel()
		stop := make(chan struct{})
		f := startFake(t, func(*fake, kmsg.Request) kmsg.Response { <-stop; return nil })
		r := examine(t, f.addr(), func(o *Options) { o.Timeout = 2 * time.Second })
		if close(stop); r.FailedStep != kafka.Name || r.Cause != causeTimeout {
			t.Errorf("%+v", r.Steps)
		}
	})
	t.Run("by a signal", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		stop := make(chan struct{})
		f := startFake(t, func(f *fake, req kmsg.Request) kmsg.Response {
			if _, ok := req.(*kmsg.MetadataRequest); ok {
				cancel()
				<-stop
				return nil
			}
			return ordinary(f, req)
		})
		o := Options{Host: "127.0.0.1", Port: f.addr().port, Mechanism: sasl.Plain, Plaintext: true, Timeout: time.Hour}
		r := Run(ctx, o)
		if close(stop); r.FailedStep != metadata.Name || r.Cause != causeInterrupted {
			t.Errorf("%+v", r.Steps)
		}
	})
}

// An advertised loopback address is reached from the gateway's own machine, and
// from no other.
func TestAnAdvertisedLoopbackIsWarnedOf(t *testing.T) {
	f := startFake(t, ordinary)
	d := &run{o: Options{Host: "kafka.example.com", Plaintext: true, Timeout: patience}, conns: map[int32]*peer{}}
	defer d.close()
	if got := d.reachBroker(t.Context(), 0, f.addr()); got.Status != steps.Warning || got.Cause != causeLoopback {
		t.Errorf("%+v", got)
	}
	d.local = true
	if got := d.reachBroker(t.Context(), 0, f.addr()); got.Status != steps.OK {
		t.Errorf("%+v", got)
	}
}
