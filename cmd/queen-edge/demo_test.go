package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestDemoOnce(t *testing.T) {
	p := launch(t, nil, "demo", "--once")
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
	out := strings.Split(strings.TrimSpace(p.stdout.String()), "\n")
	if got, want := out[len(out)-1], "demo: 2 tenants, 1000 records each, isolated: yes"; got != want {
		t.Errorf("last line %q, want %q", got, want)
	}
}

// A kept folder holds the records of earlier runs; they count for nobody's
// isolation but stay where they are.
func TestDemoOnceTwiceInOneFolder(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		p := launch(t, nil, "demo", "--once", "--data", dir)
		if code := p.wait(t); code != 0 {
			t.Fatalf("exit code %d\n%s", code, p.stderr)
		}
	}
}

func TestDemoPrintsSettingsAndEnvFile(t *testing.T) {
	d := launchDemo(t)
	for _, name := range []string{
		"BOOTSTRAP", "SNI", "CA", "CELL_URL", "CELL_DATA", "PID", "TOKEN_ACME", "TOKEN_ACME_2",
		"TOKEN_ACME_CONSUME", "TOKEN_ACME_PRODUCE", "TOKEN_ACME_TXN", "TOKEN_ACME_NOREAD", "TOKEN_GLOBEX",
	} {
		if d.env["QUEEN_EDGE_"+name] == "" {
			t.Errorf("the env file lacks QUEEN_EDGE_%s", name)
		}
	}
	if got, want := d.env["QUEEN_EDGE_PID"], fmt.Sprint(d.cmd.Process.Pid); got != want {
		t.Errorf("pid %s, want %s", got, want)
	}
	d.line(t, "Ready.")
	out := d.stdout.String()
	for _, want := range []string{"kcat -b", "sasl.jaas.config=", "confluent-kafka", "kgo.NewClient", d.token("ACME"), d.token("GLOBEX")} {
		if !strings.Contains(out, want) {
			t.Errorf("the settings lack %q", want)
		}
	}
	if code := d.stop(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM\n%s", code, d.stderr)
	}
}

// Every acknowledged record survives kill -9 in mid-produce, twenty times over
// in one folder, a hundred with QE_FULL; a token of the first start still works
// at the last.
func TestDemoSurvivesKill(t *testing.T) {
	const topic = "kill"
	rounds := 20
	if os.Getenv("QE_FULL") == "1" {
		rounds = 100
	}
	dir := t.TempDir()
	acked := make(map[string]bool)
	var first string
	for round := range rounds {
		d := launchDemo(t, "--data", dir)
		if first == "" {
			first = d.token("ACME")
		}
		produceUntilKilled(t, d, topic, round, acked)
	}
	d := launchDemo(t, "--data", dir)
	missing := len(acked)
	t.Logf("%d kills, %d acknowledged records", rounds, missing)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := d.client(t, first, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for missing > 0 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("%d of %d acknowledged records are missing: %v", missing, len(acked), err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if acked[string(r.Value)] {
				delete(acked, string(r.Value))
				missing--
			}
		})
	}
}

// produceUntilKilled produces in one go and kills the process once some records
// were acknowledged and more are on their way.
func produceUntilKilled(t *testing.T, d *runningDemo, topic string, round int, acked map[string]bool) {
	t.Helper()
	const before = 200 // acknowledged before the kill
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := d.client(t, d.token("ACME"), kgo.MaxBufferedRecords(1000), kgo.ProducerBatchMaxBytes(4096))
	var mu sync.Mutex // guards acked
	count := 0
	enough := make(chan struct{})
	go func() {
		<-enough
		d.kill()
		cancel() // what is still unacknowledged never will be
	}()
	for i := 0; ctx.Err() == nil; i++ {
		value := fmt.Sprintf("%d-%d", round, i)
		c.Produce(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}, func(_ *kgo.Record, err error) {
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			acked[value] = true
			if count++; count == before {
				close(enough)
			}
		})
	}
	c.Close()
	mu.Lock()
	defer mu.Unlock()
	if count < before {
		t.Fatalf("round %d: only %d records were acknowledged\n%s", round, count, d.stderr)
	}
}

// Nothing that was logged, at the most talkative level, holds a token: not of
// those that log in, nor of those that are refused, in any field or encoding.
func TestNoTokenInTheLog(t *testing.T) {
	dir := t.TempDir()
	d := launchDemo(t, "--log-level", "debug", "--data", dir)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const bad = "qk_live_ThisIsNotAKeyThisIsNotAKeyThisIsNotAKey1"
	for _, label := range []string{"ACME", "ACME_2", "GLOBEX"} {
		c := d.client(t, d.token(label), kgo.ClientID(d.token(label)))
		if err := c.ProduceSync(ctx, kgo.StringRecord("v"), &kgo.Record{Topic: "t", Value: []byte("v")})[1].Err; err != nil {
			t.Fatal(err)
		}
	}
	for _, token := range []string{bad, d.token("ACME_NOREAD")} {
		if err := d.client(t, token).Ping(ctx); err == nil {
			t.Error("a refused token logged in")
		}
	}
	if code := d.stop(t); code != 0 {
		t.Fatalf("exit code %d\n%s", code, d.stderr)
	}
	log := d.stderr.String()
	if !strings.Contains(log, "connection closed") {
		t.Error("the log is empty: nothing was proved")
	}
	secrets := []string{bad}
	for name, value := range d.env {
		if strings.HasPrefix(name, "QUEEN_EDGE_TOKEN_") {
			secrets = append(secrets, value)
		}
	}
	texts := map[string]string{"log": log}
	readTree(t, dir, texts)
	for where, text := range texts {
		for _, secret := range secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprintf("%x", secret)} {
				if strings.Contains(text, form) {
					t.Errorf("%s holds a token", where)
				}
			}
		}
	}
}

// readTree adds every file of a folder.
func readTree(t *testing.T, dir string, into map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		into[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
