package e2e

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/config"
)

// 2,000 partitions of which 3 have changed: a session asks with an empty list
// and is told of the three. The bytes of both ways are logged.
func TestWireSessionWide(t *testing.T) {
	const wide, changed = 2000, 3
	r := rig.Start(t, func(o *rig.Options) {
		o.Config = func(cfg *config.Config) { cfg.DefaultPartitions = wide }
	})
	w := r.Login(t, rig.Acme)
	w.Ask(wireMetadata("session"))
	id := wireTopicID(w, "session")
	parts := make([]kmsg.FetchRequestTopicPartition, wide)
	for i := range parts {
		parts[i] = wireFetchPart(int32(i), 0)
	}
	whole := sessionFetch(17, id, 0, 0, parts...)
	session := w.Ask(whole).(*kmsg.FetchResponse).SessionID

	poll := func(epoch int32) (asked, answered int, resp *kmsg.FetchResponse) {
		t.Helper()
		req := sessionFetch(17, id, session, epoch)
		resp = w.Ask(req).(*kmsg.FetchResponse)
		return len(rig.Frame(req, 1, "rig")), len(resp.AppendTo(nil)), resp
	}
	idleAsked, idleAnswered, resp := poll(1)
	if resp.ErrorCode != 0 || len(resp.Topics) != 0 {
		t.Errorf("nothing has changed: %s", told(t, resp))
	}
	for i := range int32(changed) {
		wireMustStore(t, w, "session", 700*i, wireBatch{values: []string{"new"}})
	}
	asked, answered, resp := poll(2)
	if got, want := told(t, resp), "code 0 0:0/0-1(1) 700:0/0-1(1) 1400:0/0-1(1)"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	full := w.Ask(sessionFetch(17, id, 0, -1, parts...)).(*kmsg.FetchResponse)
	if n := len(full.Topics[0].Partitions); n != wide {
		t.Errorf("without a session %d partitions are told", n)
	}
	if asked >= 200 || idleAsked >= 200 || idleAnswered >= 200 {
		t.Errorf("a poll asks with %d bytes; an idle one with %d and is answered with %d", asked, idleAsked, idleAnswered)
	}
	t.Logf("bytes per poll, asked + answered: session %d + %d, idle %d + %d, without a session %d + %d",
		asked, answered, idleAsked, idleAnswered, len(rig.Frame(whole, 1, "rig")), len(full.AppendTo(nil)))
}
