package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/demo"
)

// stepPatience is how long one command may take.
const stepPatience = 40 * time.Second

// world is what a scenario acts upon: a demo, tools that log in with a token of
// its tenant acme, and what the scenario has named and started.
type world struct {
	demo    *demo.Demo
	java    *jvm
	dir     string
	names   map[string]string
	kafka   *kgo.Client
	members map[string]*kgo.Client
	writers map[string]*kgo.Client // by transactional id
}

func newWorld(ctx context.Context, java *jvm, program, dir string) (*world, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	d, err := demo.Start(ctx, program, dir, filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	w := &world{demo: d, java: java, dir: dir, members: map[string]*kgo.Client{}, writers: map[string]*kgo.Client{}}
	_, port, _ := strings.Cut(d.Bootstrap(), ":")
	w.names = map[string]string{"dir": dir, "port": port}
	if w.kafka, err = d.Kafka("ACME"); err == nil {
		err = w.writeLogins()
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) close() error {
	for _, all := range []map[string]*kgo.Client{w.members, w.writers} {
		for _, c := range all {
			c.Close()
		}
	}
	if w.kafka != nil {
		w.kafka.Close()
	}
	return w.demo.Stop()
}

// writeLogins writes the file that the tools log in with, one for each token.
func (w *world) writeLogins() error {
	for _, label := range []string{"ACME", "ACME_CONSUME", "ACME_PRODUCE"} {
		text := fmt.Sprintf(`security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location=%s
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="tools" password="%s";
`, w.demo.Env["QUEEN_EDGE_CA"], w.demo.Token(label))
		if err := os.WriteFile(w.login(label), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) login(label string) string { return filepath.Join(w.dir, label+".properties") }

// run does one command and returns what it printed.
func (w *world) run(ctx context.Context, text string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	for name, value := range w.names {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	words := strings.Fields(text)
	switch words[0] {
	case "produce": // TOPIC PARTITION COUNT
		return nil, w.produce(ctx, words[1], words[2], words[3])
	case "now": // NAME: a time between what was written and what will be
		return nil, w.now(words[1])
	case "id": // NAME TOPIC
		return nil, w.id(ctx, words[1], words[2])
	case "file": // NAME LINE...
		return nil, os.WriteFile(filepath.Join(w.dir, words[1]), []byte(strings.Join(words[2:], "\n")+"\n"), 0o600)
	case "begin": // ID TOPIC: an open transaction with a record
		return nil, w.begin(ctx, words[1], words[2])
	case "commit": // ID
		return nil, w.commit(ctx, words[1])
	case "join": // NAME GROUP TOPIC
		return nil, w.join(ctx, words[1], words[2], words[3])
	case "leave": // NAME
		return nil, w.leave(ctx, words[1])
	}
	return w.tool(words)
}

// tool runs a tool of Apache Kafka. A word AS-… before its other arguments is the
// label of another token.
func (w *world) tool(words []string) ([]string, error) {
	t, ok := tools[words[0]]
	if !ok {
		return nil, errors.New("no such tool")
	}
	args, label := words[1:], "ACME"
	if as, ok := strings.CutPrefix(args[0], "AS-"); ok {
		args, label = args[1:], as
	}
	where := []string{"--bootstrap-server", w.demo.Bootstrap(), "--command-config", w.login(label)}
	if t.first {
		args = append(where, args...)
	} else {
		args = append(args, where...)
	}
	said, err := w.java.run(t.class, args)
	return scrub(said, w.names), err
}

func (w *world) produce(ctx context.Context, topic, partition, count string) error {
	p, err := strconv.Atoi(partition)
	n, errCount := strconv.Atoi(count)
	if err := errors.Join(err, errCount); err != nil {
		return err
	}
	for i := range n {
		r := &kgo.Record{Topic: topic, Partition: int32(p), Value: []byte(strconv.Itoa(i))}
		if err := w.kafka.ProduceSync(ctx, r).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// now names a millisecond in which nothing is written: what is written next is
// from it on.
func (w *world) now(name string) error {
	at := time.Now().UTC().Truncate(time.Millisecond).Add(time.Millisecond)
	w.names[name] = at.Format("2006-01-02T15:04:05.000")
	<-time.After(time.Until(at))
	return nil
}

func (w *world) id(ctx context.Context, name, topic string) error {
	topics, err := kadm.NewClient(w.kafka).ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	id := topics[topic].ID
	w.names[name] = base64.RawURLEncoding.EncodeToString(id[:]) // as Apache Kafka writes it
	return topics.Error()
}

func (w *world) begin(ctx context.Context, id, topic string) error {
	c, err := w.demo.Kafka("ACME", kgo.TransactionalID(id))
	if err != nil {
		return err
	}
	w.writers[id] = c
	if err := c.BeginTransaction(); err != nil {
		return err
	}
	return c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(id)}).FirstErr()
}

func (w *world) commit(ctx context.Context, id string) error {
	c, ok := w.writers[id]
	if !ok {
		return errors.New("no such transaction")
	}
	return c.EndTransaction(ctx, kgo.TryCommit)
}

// join starts a member, and waits until its group is stable with it.
func (w *world) join(ctx context.Context, name, group, topic string) error {
	assigned := make(chan struct{}, 1)
	c, err := w.demo.Kafka("ACME", kgo.ClientID(name), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.RangeBalancer()), kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			select {
			case assigned <- struct{}{}:
			default:
			}
		}))
	if err != nil {
		return err
	}
	w.members[name] = c
	select {
	case <-assigned:
	case <-ctx.Done():
		return fmt.Errorf("%s is not assigned anything: %w", name, ctx.Err())
	}
	return w.stable(ctx, group, name)
}

// stable waits until a group is at rest, and a member in it.
func (w *world) stable(ctx context.Context, group, name string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		d, err := kadm.NewClient(w.kafka).DescribeGroups(ctx, group)
		if err != nil {
			return err
		}
		g := d[group]
		if g.State == "Stable" && slices.ContainsFunc(g.Members, func(m kadm.DescribedGroupMember) bool { return m.ClientID == name }) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("group %s is %s: %w", group, g.State, ctx.Err())
		}
	}
}

func (w *world) leave(ctx context.Context, name string) error {
	c, ok := w.members[name]
	if !ok {
		return errors.New("no such member")
	}
	delete(w.members, name)
	err := c.LeaveGroupContext(ctx)
	c.Close()
	return err
}
