package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/batch"
)

// What kcat can express, with every codec. (librdkafka up to 2.11.0 sends gzip,
// snappy and lz4 only to brokers that take Produce version 0.)
func TestKcat(t *testing.T) {
	kcat := needKcat(t)
	r := rig.Start(t)
	for _, c := range []struct {
		codec batch.Codec
		flags []string
	}{
		{batch.None, nil},
		{batch.Gzip, []string{"-z", "gzip"}},
		{batch.Snappy, []string{"-z", "snappy"}},
		{batch.LZ4, []string{"-z", "lz4"}},
		{batch.Zstd, []string{"-z", "zstd"}},
	} {
		t.Run(c.codec.String(), func(t *testing.T) {
			k := kcat.as(t, r, rig.Acme)
			topic := "kcat-" + c.codec.String()
			before := r.Gateway.Stats().Batches(c.codec)
			produce := func(in string, flags ...string) string {
				args := append([]string{"-P", "-t", topic, "-p", "2", "-d", "protocol,msg"}, c.flags...)
				_, log := k.run(strings.NewReader(in), append(args, flags...)...)
				wantNoProtocolError(t, log)
				return log
			}
			long := strings.Repeat("compressible ", 1000)
			produce("k1:v1\n:empty key\nk3:\n"+"k4:"+long+"\n", "-K:", "-H", "a=1", "-H", "b=2", "-H", "a=3", "-H", "empty=")
			produce("k5:\n:\n", "-K:", "-Z")
			produce("no key\n", "-X", "enable.idempotence=true", "-H", "null")
			if r.Gateway.Stats().Batches(c.codec) == before {
				t.Error("no batch arrived with this codec")
			}

			out, log := k.run(nil, "-C", "-t", topic, "-p", "2", "-o", "beginning", "-e", "-d", "protocol",
				"-f", "%o|%K|%k|%S|%s|%h\n")
			wantNoProtocolError(t, log)
			headers := "|a=1,b=2,a=3,empty=\n"
			wantText := "0|2|k1|2|v1" + headers + "1|0||9|empty key" + headers + "2|2|k3|0|" + headers +
				fmt.Sprintf("3|2|k4|%d|%s", len(long), long) + headers +
				"4|2|k5|-1||\n" + "5|-1||-1||\n" + "6|-1||6|no key|null=NULL\n"
			if out != wantText {
				t.Errorf("kcat reads\n%s\nwant\n%s", clip(out), clip(wantText))
			}
			wantKcatRecords(t, r, topic, long)
		})
	}
}

// wantKcatRecords reads what kcat wrote with the other client.
func wantKcatRecords(t *testing.T, r *rig.Rig, topic, long string) {
	t.Helper()
	headers := []kgo.RecordHeader{
		{Key: "a", Value: []byte("1")},
		{Key: "b", Value: []byte("2")},
		{Key: "a", Value: []byte("3")},
		{Key: "empty", Value: []byte{}},
	}
	want := []*kgo.Record{
		{Key: []byte("k1"), Value: []byte("v1"), Headers: headers},
		{Key: []byte{}, Value: []byte("empty key"), Headers: headers},
		{Key: []byte("k3"), Value: []byte{}, Headers: headers},
		{Key: []byte("k4"), Value: []byte(long), Headers: headers},
		{Key: []byte("k5")},
		{},
		{Value: []byte("no key"), Headers: []kgo.RecordHeader{{Key: "null"}}},
	}
	got := readAll(t, r, rig.Consume, topic)[2]
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i, rec := range got {
		want[i].Timestamp = rec.Timestamp // kcat's clock
		wantRecord(t, rec, want[i])
	}
}

// wantNoProtocolError looks for librdkafka's complaints about our answers.
func wantNoProtocolError(t *testing.T, log string) {
	t.Helper()
	if !strings.Contains(log, "ApiVersionResponse") {
		t.Errorf("the log does not show the protocol:\n%s", clip(log))
	}
	for line := range strings.Lines(log) {
		for _, complaint := range []string{"PROTOERR", "PROTOUFLOW", "parse fail", "underflow", "UNKNOWN_"} {
			if strings.Contains(line, complaint) {
				t.Errorf("kcat complains: %s", line)
			}
		}
	}
}

// A listing shows a tenant its own topics, and one broker at the address that
// was dialled.
func TestKcatLists(t *testing.T) {
	kcat := needKcat(t)
	r := rig.Start(t)
	for key, topic := range map[string]string{rig.Acme: "only-acme", rig.Globex: "only-globex"} {
		kcat.as(t, r, key).run(strings.NewReader("x\n"), "-P", "-t", topic)
		kcat.as(t, r, key).run(strings.NewReader("x\n"), "-P", "-t", "both")
	}
	for key, topic := range map[string]string{rig.Acme2: "only-acme", rig.Consume: "only-acme", rig.Globex: "only-globex"} {
		out, _ := kcat.as(t, r, key).run(nil, "-L")
		var topics []string
		for line := range strings.Lines(out) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), `topic "`); ok {
				topics = append(topics, name[:strings.IndexByte(name, '"')])
			}
		}
		if !slices.Equal(topics, []string{"both", topic}) {
			t.Errorf("key %s lists %v, want both and %s", key, topics, topic)
		}
		if !strings.Contains(out, " 1 brokers:\n") || !strings.Contains(out, "broker 0 at "+r.Addr) {
			t.Errorf("key %s sees other brokers than one at %s:\n%s", key, r.Addr, clip(out))
		}
	}
}

// kcat tells what its offsets mean: the end, the last two, and a time.
func TestKcatOffsets(t *testing.T) {
	kcat := needKcat(t)
	r := rig.Start(t)
	k := kcat.as(t, r, rig.Acme)
	k.run(strings.NewReader("0\n1\n2\n3\n4\n"), "-P", "-t", "five", "-p", "1")
	for offset, want := range map[string]string{"beginning": "0\n1\n2\n3\n4\n", "-2": "3\n4\n", "3": "3\n4\n", "end": ""} {
		if out, _ := k.run(nil, "-C", "-q", "-e", "-t", "five", "-p", "1", "-o", offset); out != want {
			t.Errorf("from %s kcat reads %q, want %q", offset, out, want)
		}
	}
	for at, want := range map[string]string{"0": "0", "-2": "0", "-1": "5"} {
		out, _ := k.run(nil, "-Q", "-t", "five:1:"+at)
		if strings.TrimSpace(out) != "five [1] offset "+want {
			t.Errorf("for time %s kcat says %q, want offset %s", at, out, want)
		}
	}
}

// clip keeps a failure readable.
func clip(s string) string {
	const most = 2000
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
