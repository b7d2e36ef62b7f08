package cloud

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/compat/rig"
)

const (
	createTopics         = 19
	endTxn               = 26
	describeConfigs      = 32
	describeLogDirs      = 35
	incrementalConfigs   = 44
	describeProducers    = 61
	describeTransactions = 65
	listTransactions     = 66
)

func topicScenarios() []scenario {
	return []scenario{
		{number: 1, name: "metadata lists its own topics", keys: both(), run: ownTopics},
		{number: 2, name: "equal topic names hold their own records", keys: both(), run: ownRecords},
		{number: 5, name: "a consume key reads and creates nothing", keys: []string{rig.Acme, rig.Consume}, apis: []int16{createTopics}, run: consumeKey},
		{number: 6, name: "a produce key produces and reads nothing", keys: []string{rig.Acme, rig.Produce}, run: produceKey},
		{number: 7, name: "a key without read cannot log in", keys: []string{rig.Acme, rig.NoRead, rig.Globex}, run: noReadKey},
		{number: 15, name: "a produce and consume key commits a transaction", keys: []string{rig.Acme, rig.Txn, rig.Consume}, cell: true, apis: []int16{endTxn}, run: txnKey},
	}
}

func ownTopics(t *testing.T, s *system) {
	shared, a, g := s.name("listed"), s.name("listed-acme"), s.name("listed-globex")
	acme, globex := s.Login(t, rig.Acme), s.Login(t, rig.Globex)
	for _, w := range []*rig.Wire{acme, globex} {
		makeTopic(t, w, shared)
	}
	makeTopic(t, acme, a)
	makeTopic(t, globex, g)
	// Twice: the second time from what the gateway remembers.
	for range 2 {
		for _, x := range []struct {
			key       string
			own, them string
		}{{rig.Acme, a, g}, {rig.Globex, g, a}} {
			names := listed(t, s.Login(t, x.key))
			if !slices.Contains(names, shared) || !slices.Contains(names, x.own) || slices.Contains(names, x.them) {
				t.Errorf("%s lists %v; want %s and %s, and not %s", x.key, names, shared, x.own, x.them)
			}
			topics, err := kadm.NewClient(s.Kafka(t, x.key)).ListTopics(rig.Context(t))
			must(t, err)
			if !topics.Has(shared) || !topics.Has(x.own) || topics.Has(x.them) {
				t.Errorf("an admin client of %s lists %v", x.key, topics.Names())
			}
		}
	}
	if got := metadata(globex, false, a).Topics[0]; got.ErrorCode != 3 || len(got.Partitions) != 0 {
		t.Errorf("another tenant's topic, by name: %+v", got)
	}
}

func ownRecords(t *testing.T, s *system) {
	topic := s.name("records")
	own := map[string][]string{rig.Acme: {"a0", "a1", "a2"}, rig.Globex: {"g0", "g1"}}
	for key, list := range own {
		makeTopic(t, s.Login(t, key), topic)
		p := s.Kafka(t, key, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for _, v := range list {
			must(t, p.ProduceSync(rig.Context(t), &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr())
		}
	}
	for key, want := range own {
		c := s.Kafka(t, key, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
		var got []string
		for len(got) < len(want) {
			fetches := c.PollFetches(rig.Context(t))
			must(t, fetches.Err())
			fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s reads %v, want %v", key, got, want)
		}
		wantValues(t, s.Login(t, key), topic, want...)
	}
}

func consumeKey(t *testing.T, s *system) {
	topic := s.name("consume-key")
	w := s.Login(t, rig.Acme)
	makeTopic(t, w, topic)
	store(t, w, topic, noProducer(), "v")
	wantValues(t, s.Login(t, rig.Consume), topic, "v")
	admin := kadm.NewClient(s.Kafka(t, rig.Consume))
	got, err := admin.CreateTopic(rig.Context(t), 1, 1, nil, s.name("not-to-be"))
	if !errors.Is(err, kerr.TopicAuthorizationFailed) || !strings.Contains(got.ErrMessage, "403") {
		t.Errorf("CreateTopics: %v %q; want 29 and the cell's 403 in the text", err, got.ErrMessage)
	}
	if slices.Contains(listed(t, w), s.name("not-to-be")) {
		t.Error("the topic is there")
	}
}

func produceKey(t *testing.T, s *system) {
	topic := s.name("produce-key")
	full, w := s.Login(t, rig.Acme), s.Login(t, rig.Produce)
	makeTopic(t, full, topic)
	store(t, w, topic, noProducer(), "v")
	wantValues(t, full, topic, "v")
	if p := fetch(w, topic); p.ErrorCode != kerr.TopicAuthorizationFailed.Code || len(p.RecordBatches) > 0 {
		t.Errorf("Fetch: code %d and %d bytes, want 29 and none", p.ErrorCode, len(p.RecordBatches))
	}
}

func noReadKey(t *testing.T, s *system) {
	c, err := kgo.NewClient(kgo.SeedBrokers(s.Addr), kgo.DialTLSConfig(s.TLS()),
		kgo.SASL(plain.Auth{User: "u", Pass: s.Key(rig.NoRead)}.AsMechanism()))
	must(t, err)
	defer c.Close()
	err = c.Ping(rig.Context(t))
	if !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Fatalf("login: %v, want 58", err)
	}
	text := strings.ToLower(err.Error())
	if !strings.Contains(text, "scope") || strings.Contains(text, "not a valid token") || strings.Contains(text, s.Key(rig.NoRead)) {
		t.Errorf("the client reads %q; want a sentence about scopes", err)
	}
	// What was refused to one is refused to nobody else.
	s.Login(t, rig.Acme)
	s.Login(t, rig.Globex)
}

func txnKey(t *testing.T, s *system) {
	topic := s.name("txn-key")
	w := s.Login(t, rig.Acme)
	makeTopic(t, w, topic)
	transact(t, s, rig.Txn, s.name("txn-key"), topic, "committed")
	wantValues(t, w, topic, "committed")
	// The route is a producer's: who may only consume is refused there.
	bundle := `{"operations":[],"kv":[{"op":"put","ns":"queen-kafka","key":"qk:cloud:` + s.run + `","value":{"v":1},"ttlSeconds":60}]}`
	s.call(t, rig.Txn, "POST", "/api/v1/transaction", bundle).want(t, "the route with produce", 200, `"success":true`)
	s.call(t, rig.Consume, "POST", "/api/v1/transaction", bundle).want(t, "the route without produce", 403, "forbidden")
}

// transact commits a transaction of one record.
func transact(t *testing.T, s *system, key, id, topic, value string) {
	t.Helper()
	c := s.Kafka(t, key, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, c.BeginTransaction())
	must(t, c.ProduceSync(rig.Context(t), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr())
	must(t, c.EndTransaction(rig.Context(t), kgo.TryCommit))
}

// pollWait is as long as a poll may be.
const pollWait = 30 * time.Second

// poll is a long poll under way.
type poll struct {
	sent   time.Time
	answer chan pollAnswer
	topic  string
}

type pollAnswer struct {
	frame []byte
	err   error
	at    time.Time
}

// sendPoll sends the long poll of scenario 14; it runs beside all others.
func sendPoll(t *testing.T, s *system) *poll {
	p := &poll{answer: make(chan pollAnswer, 1), topic: s.name("poll")}
	sc := scenario{keys: both()[:1]}
	if reason, _ := sc.missing(s); reason != "" {
		return p
	}
	w := s.Login(t, rig.Acme)
	makeTopic(t, w, p.topic)
	must(t, w.SetDeadline(time.Now().Add(pollWait+rig.Patience)))
	p.sent = time.Now()
	w.Send(fetchRequest(p.topic, 0, pollWait))
	go p.receive(w)
	return p
}

func (p *poll) receive(w *rig.Wire) {
	frame, err := w.ReadFrame()
	p.answer <- pollAnswer{frame, err, time.Now()}
}

// scenario is 14: nothing between client and broker cuts a poll that long.
func (p *poll) scenario(t *testing.T, _ *system) {
	a := <-p.answer
	if a.err != nil {
		t.Fatalf("the poll was cut: %v", a.err)
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 12
	must(t, resp.ReadFrom(a.frame[binary.Size(int32(0))+1:])) // correlation id, tags
	part := resp.Topics[0].Partitions[0]
	if resp.ErrorCode != 0 || part.ErrorCode != 0 || len(part.RecordBatches) != 0 {
		t.Errorf("codes %d and %d, %d bytes", resp.ErrorCode, part.ErrorCode, len(part.RecordBatches))
	}
	took := a.at.Sub(p.sent)
	if took < pollWait-time.Second {
		t.Errorf("answered after %v: nobody waited", took)
	}
	t.Logf("a poll of %v took %v: margin %v", pollWait, took.Round(time.Millisecond), (took - pollWait).Round(time.Millisecond))
}
