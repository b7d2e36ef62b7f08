package proxyclient

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/queen-mq/queen-edge/edge/batch"
)

// got is a record as the sink saw it, copied.
type got struct {
	entry      int
	offset, ts int64
	key, value string
	headers    string
}

func text(b []byte) string {
	if b == nil {
		return "<nil>"
	}
	return string(b)
}

func collect(into *[]got) func(int, *batch.Record) error {
	return func(entry int, r *batch.Record) error {
		g := got{entry: entry, offset: r.Offset, ts: r.Timestamp, key: text(r.Key), value: text(r.Value)}
		for _, h := range r.Headers {
			g.headers += string(h.Key) + "=" + text(h.Value) + ";"
		}
		*into = append(*into, g)
		return nil
	}
}

// readFetch reads an answer without HTTP, in pieces of one byte to the whole.
func readFetch(body io.Reader, entries []FetchEntry, sink func(int, *batch.Record) error) ([]FetchResult, error) {
	f := &fetchReader{entries: entries, sink: sink}
	f.in.reset(body)
	err := f.read()
	return f.results, err
}

const ts123 = 1790931600123 // 2026-10-02T09:00:00.123Z

func TestFetch(t *testing.T) {
	t.Parallel()
	if at := time.UnixMilli(ts123).UTC().Format(time.RFC3339Nano); at != "2026-10-02T09:00:00.123Z" {
		t.Fatal(at)
	}
	answer := `{"entries":[
	 {"queue":"orders","partition":"2","records":[
	   {"offset":40,"transactionId":"0190","payload":{"k":null,"v":"aGk="},"ts":"2026-10-02T09:00:00.123Z"},
	   {"ts":"2026-10-02T09:00:00.1239Z","payload":{"v":null,"t":5,"k":"","h":[{"k":"a","v":null},{"v":"eA==","k":"a"}]},"new":[{"x":"]}"}],"offset":42}],
	  "highWatermark":43,"logStartOffset":1},
	 {"logStartOffset":0,"highWatermark":9223372036854775807,"records":[{"payload":{ "a" : [1, "x y\""] },"offset":0}],"extra":{"queue":"no"},"partition":"0","queue":"é"},
	 {"error":"UNKNOWN_TOPIC_OR_PARTITION","queue":"gone","partition":"7","records":[],"highWatermark":0,"logStartOffset":0},
	 {"queue":"orders","partition":"3","error":"OFFSET_OUT_OF_RANGE","highWatermark":9,"logStartOffset":4},
	 {"queue":"orders","partition":"4","error":"NEW\u001b[31m_` + testBearer + `","records":null,"highWatermark":9,"logStartOffset":4},
	 {"queue":"orders","partition":"5","error":null,"records":[],"highWatermark":9,"logStartOffset":9}
	],"more":true} `
	entries := []FetchEntry{{"orders", 2, 40, 1 << 20}, {"é", 0, 0, 1}, {"gone", 7, 0, 1}, {"orders", 3, 1<<63 - 1, 1}, {"orders", 4, 9, 1}, {"orders", 5, 9, 1}}
	c, cell := talk(t, says(answer))
	var records []got
	before := []FetchResult{{HighWatermark: 77}}
	results, err := c.Fetch(t.Context(), testScope(t), entries, 500*time.Millisecond, 1, collect(&records), before)
	if err != nil {
		t.Fatal(err)
	}
	wantRecords := []got{
		{0, 40, ts123, "<nil>", "hi", ""},
		{0, 42, 5, "", "<nil>", "a=<nil>;a=x;"},
		{1, 0, -1, "<nil>", `{"a":[1,"x y\""]}`, ""},
	}
	if !reflect.DeepEqual(records, wantRecords) {
		t.Errorf("records\n%+v\nwant\n%+v", records, wantRecords)
	}
	wantResults := []FetchResult{
		{HighWatermark: 77},
		{43, 1, ts123, EntryOK, ""},
		{9223372036854775807, 0, 0, EntryOK, ""},
		{0, 0, 0, EntryUnknownTopicOrPartition, ""},
		{9, 4, 0, EntryOffsetOutOfRange, ""},
		{9, 4, 0, EntryUnknownMarker, "NEW_<redacted>"},
		{9, 9, 0, EntryOK, ""},
	}
	if !reflect.DeepEqual(results, wantResults) {
		t.Errorf("results\n%+v\nwant\n%+v", results, wantResults)
	}
	wantBody := `{"entries":[{"queue":"orders","partition":"2","offset":40,"maxBytes":1048576},{"queue":"é","partition":"0","offset":0,"maxBytes":1},` +
		`{"queue":"gone","partition":"7","offset":0,"maxBytes":1},{"queue":"orders","partition":"3","offset":9223372036854775807,"maxBytes":1},` +
		`{"queue":"orders","partition":"4","offset":9,"maxBytes":1},{"queue":"orders","partition":"5","offset":9,"maxBytes":1}],"maxWaitMs":500,"minBytes":1}`
	if h := cell.last(t); h.body != wantBody || h.uri != "/api/v1/fetch" || h.method != "POST" {
		t.Errorf("%s", h.body)
	}
	// However the bytes arrive, the answer is the same.
	for name, split := range map[string]func(io.Reader) io.Reader{"bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "with EOF": iotest.DataErrReader} {
		var again []got
		_, err := readFetch(split(strings.NewReader(answer)), entries, collect(&again))
		if err != nil || !reflect.DeepEqual(again, wantRecords) {
			t.Errorf("%s: %v\n%+v", name, err, again)
		}
	}
	// Cut anywhere, it is a failure.
	body := strings.TrimSpace(answer)
	for n := range len(body) {
		if _, err := readFetch(strings.NewReader(body[:n]), entries, nil); !errors.Is(err, errEnds) && !errors.Is(err, errSyntax) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestFetchWaitAndLimits(t *testing.T) {
	t.Parallel()
	answer := `{"entries":[{"queue":"q","partition":"0","records":[],"highWatermark":0,"logStartOffset":0}]}`
	entries := []FetchEntry{{"q", 0, 0, 1}}
	c, cell := talk(t, says(answer))
	for wait, want := range map[time.Duration]string{
		-time.Second: `"maxWaitMs":0,"minBytes":0}`, time.Hour: `"maxWaitMs":30000,"minBytes":0}`, 1500 * time.Microsecond: `"maxWaitMs":1,"minBytes":0}`,
	} {
		if _, err := c.Fetch(t.Context(), testScope(t), entries, wait, -5, nil, nil); err != nil {
			t.Fatal(err)
		}
		if body := cell.last(t).body; !strings.HasSuffix(body, want) {
			t.Error(body)
		}
	}
	before := len(cell.requests())
	if r, err := c.Fetch(t.Context(), testScope(t), nil, 0, 0, nil, nil); err != nil || len(r) != 0 || len(cell.requests()) != before {
		t.Error("no entries made a call", r, err)
	}
	// The wait is added to the call's own time.
	slow := newFakeCell(t, func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(150 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
			_, _ = io.WriteString(w, answer)
		case <-r.Context().Done():
		}
	})
	c = newTestClient(t, slow.URL, func(cfg *Config) { cfg.CallTimeout = 50 * time.Millisecond })
	if _, err := c.Fetch(t.Context(), testScope(t), entries, 5*time.Second, 1, nil, nil); err != nil {
		t.Error(err)
	}
	_, err := c.Fetch(t.Context(), testScope(t), entries, 0, 1, nil, nil)
	if e := mustError(t, err, KindTransport); !e.Timeout() {
		t.Error(e)
	}
}

func TestFetchAnswersThatDoNotLineUp(t *testing.T) {
	t.Parallel()
	entry := func(queue, partition, rest string) string {
		return `{"queue":` + queue + `,"partition":` + partition + `,"highWatermark":9,"logStartOffset":0` + rest + `}`
	}
	good := entry(`"q"`, `"0"`, ``)
	rec := func(records string) string {
		return `{"entries":[` + entry(`"q"`, `"0"`, `,"records":[`+records+`]`) + `]}`
	}
	for name, body := range map[string]string{
		"none":                `{"entries":[]}`,
		"two":                 `{"entries":[` + good + `,` + good + `]}`,
		"no entries":          `{}`,
		"entries twice":       `{"entries":[` + good + `],"entries":[` + good + `]}`,
		"null entries":        `{"entries":null}`,
		"array":               `[` + good + `]`,
		"other queue":         `{"entries":[` + entry(`"p"`, `"0"`, ``) + `]}`,
		"other partition":     `{"entries":[` + entry(`"q"`, `"1"`, ``) + `]}`,
		"padded partition":    `{"entries":[` + entry(`"q"`, `"00"`, ``) + `]}`,
		"number partition":    `{"entries":[` + entry(`"q"`, `0`, ``) + `]}`,
		"no queue":            `{"entries":[{"partition":"0","highWatermark":9,"logStartOffset":0}]}`,
		"no partition":        `{"entries":[{"queue":"q","highWatermark":9,"logStartOffset":0}]}`,
		"no bounds":           `{"entries":[{"queue":"q","partition":"0","logStartOffset":0}]}`,
		"null bound":          `{"entries":[{"queue":"q","partition":"0","highWatermark":null,"logStartOffset":0}]}`,
		"negative bound":      `{"entries":[{"queue":"q","partition":"0","highWatermark":1,"logStartOffset":-1}]}`,
		"overflowing bound":   `{"entries":[{"queue":"q","partition":"0","highWatermark":9223372036854775808,"logStartOffset":0}]}`,
		"records twice":       `{"entries":[` + entry(`"q"`, `"0"`, `,"records":[],"records":[]`) + `]}`,
		"records object":      `{"entries":[` + entry(`"q"`, `"0"`, `,"records":{}`) + `]}`,
		"records nul":         `{"entries":[` + entry(`"q"`, `"0"`, `,"records":nul`) + `]}`,
		"error number":        `{"entries":[` + entry(`"q"`, `"0"`, `,"error":3`) + `]}`,
		"descending":          rec(`{"offset":5,"payload":1},{"offset":4,"payload":1}`),
		"same offset":         rec(`{"offset":5,"payload":1},{"offset":5,"payload":1}`),
		"below the offset":    rec(`{"offset":2,"payload":1}`),
		"no offset":           rec(`{"payload":1}`),
		"text offset":         rec(`{"offset":"5","payload":1}`),
		"negative offset":     rec(`{"offset":-1,"payload":1}`),
		"fraction offset":     rec(`{"offset":5.0,"payload":1}`),
		"record is no object": rec(`[1]`),
		"bad payload":         rec(`{"offset":5,"payload":[1,}`),
		"bad payload 2":       rec(`{"offset":5,"payload":{"k":null,"v":tru}}`),
		"bad payload 3":       rec(`{"offset":5,"payload":{]}`),
		"bad payload 4":       rec(`{"offset":5,"payload":01}`),
		"bad unknown":         rec(`{"offset":5,"x":nope,"payload":1}`),
		"bad key":             rec(`{"off` + "\n" + `set":5,"payload":1}`),
		"no value":            rec(`{"offset":5,"payload":}`),
		"comma":               rec(`{"offset":5,"payload":1,}`),
		"two commas":          rec(`{"offset":5,,"payload":1}`),
		"no comma":            rec(`{"offset":5 "payload":1}`),
		"no comma, records":   rec(`{"offset":5}{"offset":6}`),
		"trailing":            `{"entries":[` + good + `]} x`,
		"second value":        `{"entries":[` + good + `]}{}`,
		"empty":               ``,
		"text":                `nothing`,
		"bad top":             `{"x":[1,],"entries":[` + good + `]}`,
		"bare key":            `{entries:[` + good + `]}`,
		"number key":          `{1:[` + good + `]}`,
	} {
		c, _ := talk(t, says(body))
		dst := []FetchResult{{HighWatermark: 5}}
		results, err := c.Fetch(t.Context(), testScope(t), []FetchEntry{{"q", 0, 3, 1}}, 0, 0, func(int, *batch.Record) error { return nil }, dst)
		if e, ok := AsError(err); !ok || e.Kind != KindBody || len(results) != 1 {
			t.Errorf("%s: %v, %v", name, results, err)
		}
	}
	c, _ := talk(t, says(`{"entries":[`+good+`]}`))
	if _, err := c.Fetch(t.Context(), testScope(t), []FetchEntry{{"q", 0, 3, 1}}, 0, 0, nil, nil); err != nil {
		t.Error(err)
	}
}

func TestTheSinksErrorIsItsOwn(t *testing.T) {
	t.Parallel()
	answer := `{"entries":[{"queue":"q","partition":"0","records":[{"offset":1,"payload":1},{"offset":2,"payload":1}],"highWatermark":9,"logStartOffset":0}]}`
	c, _ := talk(t, says(answer))
	enough, calls := errors.New("enough"), 0
	_, err := c.Fetch(t.Context(), testScope(t), []FetchEntry{{"q", 0, 0, 1}}, 0, 0, func(int, *batch.Record) error {
		calls++
		return enough
	}, nil)
	if err != enough || calls != 1 { //nolint:errorlint // it must be the very same
		t.Error(err, calls)
	}
}

// A cell that stops in the middle is a transport failure, not bad JSON.
func TestFetchCutOnTheWire(t *testing.T) {
	t.Parallel()
	for _, header := range []bool{true, false} {
		c, _ := talk(t, func(w http.ResponseWriter, _ *http.Request) {
			if header {
				w.Header().Set("Content-Length", "100000")
			}
			_, _ = io.WriteString(w, `{"entries":[{"queue":"q","partition":"0","records":[{"offset":1,"pay`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		_, err := c.Fetch(t.Context(), testScope(t), []FetchEntry{{"q", 0, 0, 1}}, 0, 0, nil, nil)
		mustError(t, err, KindTransport)
	}
}

// Many times more than the window passes through it, and one record larger
// than it makes it grow.
func TestFetchMemoryIsTheLargestRecord(t *testing.T) {
	t.Parallel()
	big := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("big", 100_000)))
	pr, pw := io.Pipe()
	go func() {
		_, _ = io.WriteString(pw, `{"entries":[{"queue":"q","partition":"0","highWatermark":9,"logStartOffset":0,"records":[`)
		for i := range 4000 {
			_, _ = fmt.Fprintf(pw, `{"offset":%d,"payload":{"k":null,"v":"%s"},"ts":"2026-10-02T09:00:00.123Z"},`, i, strings.Repeat("YWJj", 100))
		}
		_, _ = io.WriteString(pw, `{"offset":4000,"payload":{"k":null,"v":"`+big+`"}}]}]}`)
		_ = pw.Close()
	}()
	f := &fetchReader{entries: []FetchEntry{{"q", 0, 0, 1}}}
	f.in.reset(pr)
	widest, n := 0, 0
	f.sink = func(_ int, r *batch.Record) error {
		if n++; r.Offset < 4000 {
			widest = max(widest, cap(f.in.buf))
		} else if len(r.Value) != 300_000 {
			t.Errorf("%d bytes", len(r.Value))
		}
		return nil
	}
	if err := f.read(); err != nil || n != 4001 {
		t.Fatal(n, err)
	}
	if widest != windowSize || cap(f.in.buf) > 1<<20 || f.in.total < 20*windowSize {
		t.Errorf("window %d, then %d, for %d bytes", widest, cap(f.in.buf), f.in.total)
	}
}

func TestFetchLimits(t *testing.T) {
	t.Parallel()
	w := window{}
	w.reset(endless{})
	w.buf, w.tail = make([]byte, maxFetchRecord+1), maxFetchRecord+1 // one string fills it
	w.buf[0] = '"'
	if _, err := w.value(); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
	w.reset(endless{})
	w.total = maxFetchTotal
	if _, err := w.value(); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestFetchConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	var ports []string
	c, _ := talk(t, func(w http.ResponseWriter, r *http.Request) {
		ports = append(ports, r.RemoteAddr)
		_, _ = io.WriteString(w, `{"entries":[{"queue":"q","partition":"0","records":[`)
		for i := range 3000 {
			_, _ = io.WriteString(w, `{"offset":`+strconv.Itoa(i)+`,"payload":null},`)
		}
		_, _ = io.WriteString(w, `{"offset":3000}],"highWatermark":9,"logStartOffset":0}]}`+"\n")
	})
	for range 3 {
		n := 0
		_, err := c.Fetch(t.Context(), testScope(t), []FetchEntry{{"q", 0, 0, 1}}, 0, 0, func(_ int, r *batch.Record) error {
			n++
			if string(r.Value) != "null" {
				t.Fatalf("%q", r.Value)
			}
			return nil
		}, nil)
		if err != nil || n != 3001 {
			t.Fatal(n, err)
		}
	}
	if ports[0] != ports[1] || ports[1] != ports[2] {
		t.Error(ports)
	}
}

func TestFetchCancelledWhileParked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c, _ := talk(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := c.Fetch(ctx, testScope(t), []FetchEntry{{"q", 0, 0, 1}}, MaxFetchWait, 1, nil, nil)
	if e := mustError(t, err, KindTransport); !errors.Is(e, context.Canceled) {
		t.Error(e)
	}
}
