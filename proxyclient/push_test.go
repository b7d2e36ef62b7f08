package proxyclient

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/queen-mq/queen-edge/edge/batch"
)

func TestPushBodyOnTheWire(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, says(`[{"index":1,"status":"duplicate","offset":7},{"index":0,"message_id":"m","status":"queued","offset":41},{"status":"buffered","index":2},{"index":3,"status":"error","offset":null},{"index":4,"status":"new word","offset":0}]`))
	b := NewPushBody()
	defer b.Release()
	b.Add("orders", 2, &batch.Record{Timestamp: 1790000000123, Key: []byte("id-1"), Value: []byte(`{"a":1}`)})
	b.Add("orders", 2, &batch.Record{Timestamp: -1, Key: nil, Value: nil})
	b.Add("orders", 0, &batch.Record{Timestamp: 0, Key: []byte{}, Value: []byte{}})
	b.Add("o\"\\\n\x01é\xff", 7, &batch.Record{Timestamp: -1, Headers: []batch.Header{
		{Key: []byte("a"), Value: nil}, {Key: []byte("a"), Value: []byte{}}, {Key: []byte("\x80ü\t"), Value: []byte("x")},
	}})
	b.Add("z", 1, record("k", strings.Repeat("long", 100)))
	got, err := c.Push(t.Context(), testScope(t), b, Mark{}, b.Mark(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"items":[{"queue":"orders","partition":"2","payload":{"k":"aWQtMQ==","t":1790000000123,"v":"eyJhIjoxfQ=="}},` +
		`{"queue":"orders","partition":"2","payload":{"k":null,"v":null}},` +
		`{"queue":"orders","partition":"0","payload":{"k":"","t":0,"v":""}},` +
		`{"queue":"o\"\\\n\u0001é` + "\uFFFD" + `","partition":"7","payload":{"h":[{"k":"a","v":null},{"k":"a","v":""},{"k":"` + "\uFFFD" + `ü\u0009","v":"eA=="}],"k":null,"v":null}},` +
		`{"queue":"z","partition":"1","payload":{"k":"aw==","v":"` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("long", 100))) + `"}}]}`
	heard := cell.last(t)
	if heard.body != want {
		t.Errorf("body\n%s\nwant\n%s", heard.body, want)
	}
	if !json.Valid([]byte(heard.body)) || heard.method != "POST" || heard.uri != "/api/v1/push" || heard.header.Get("Content-Length") != strconv.Itoa(len(want)) {
		t.Errorf("%+v", heard)
	}
	results := []PushResult{{PushQueued, 41}, {PushDuplicate, 7}, {PushBuffered, -1}, {PushFailed, -1}, {PushFailed, 0}}
	if len(got) != len(results) {
		t.Fatalf("%v", got)
	}
	for i := range got {
		if got[i] != results[i] {
			t.Errorf("%d: %v, want %v", i, got[i], results[i])
		}
	}
}

// Any span between two marks is a body of its own (B8).
func TestPushSpans(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Items []struct{ Queue string } }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		out := []string{}
		for i, item := range body.Items {
			out = append(out, `{"index":`+strconv.Itoa(i)+`,"status":"queued","offset":`+item.Queue+`}`)
		}
		_, _ = io.WriteString(w, "["+strings.Join(out, ",")+"]")
	})
	b := NewPushBody()
	defer b.Release()
	marks := []Mark{b.Mark()}
	for i := range 5 {
		b.Add(strconv.Itoa(i), 0, record("k", "v"))
		marks = append(marks, b.Mark())
	}
	for from := range marks {
		for to := from; to < len(marks); to++ {
			dst := []PushResult{{PushFailed, 99}}
			got, err := c.Push(t.Context(), testScope(t), b, marks[from], marks[to], dst)
			if err != nil || len(got) != 1+to-from || got[0] != dst[0] {
				t.Fatalf("%d..%d: %v, %v", from, to, got, err)
			}
			for i, r := range got[1:] {
				if r.Offset != int64(from+i) {
					t.Errorf("%d..%d: item %d is %d", from, to, i, r.Offset)
				}
			}
		}
	}
	if n := len(cell.requests()); n != 15 {
		t.Errorf("%d requests; empty spans are none", n)
	}
	if m := marks[3]; m.Items() != 3 || m.Bytes() != marks[2].Bytes()+(marks[3].Bytes()-marks[2].Bytes()) || b.Items() != 5 || b.Bytes() != marks[5].Bytes() {
		t.Error("marks do not count")
	}
	b.Truncate(marks[2])
	b.Add("9", 0, record("", ""))
	got, err := c.Push(t.Context(), testScope(t), b, Mark{}, b.Mark(), nil)
	if err != nil || len(got) != 3 || got[2].Offset != 9 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestPushAnswersThatDoNotLineUp(t *testing.T) {
	t.Parallel()
	b := NewPushBody()
	defer b.Release()
	b.Add("q", 0, record("k", "v"))
	b.Add("q", 0, record("k", "v"))
	for name, body := range map[string]string{
		"too few":         `[{"index":0,"status":"queued","offset":1}]`,
		"none":            `[]`,
		"twice":           `[{"index":0,"status":"queued","offset":1},{"index":0,"status":"queued","offset":2}]`,
		"out of range":    `[{"index":0,"status":"queued","offset":1},{"index":2,"status":"queued","offset":2}]`,
		"negative":        `[{"index":-1,"status":"queued","offset":1},{"index":1,"status":"queued","offset":2}]`,
		"no index":        `[{"status":"queued","offset":1},{"index":1,"status":"queued","offset":2}]`,
		"text index":      `[{"index":"0","status":"queued"},{"index":1,"status":"queued"}]`,
		"text offset":     `[{"index":0,"status":"queued","offset":"1"},{"index":1,"status":"queued"}]`,
		"negative offset": `[{"index":0,"status":"queued","offset":-2},{"index":1,"status":"queued"}]`,
		"fraction":        `[{"index":0.5,"status":"queued"},{"index":1,"status":"queued"}]`,
		"too many":        `[{"index":0},{"index":1},{"index":1}]`,
		"object":          `{"results":[]}`,
		"not json":        `queued`,
		"empty":           ``,
		"cut":             `[{"index":0,"status":"queued","offset":1},{"index":1,"sta`,
		"trailing":        `[{"index":0},{"index":1}] x`,
		"huge":            `[` + strings.Repeat(" ", maxAnswer+3*perPushAnswer) + `{"index":0},{"index":1}]`,
	} {
		c, _ := talk(t, says(body))
		dst := []PushResult{{PushQueued, 5}}
		got, err := c.Push(t.Context(), testScope(t), b, Mark{}, b.Mark(), dst)
		e := mustError(t, err, KindBody)
		if e.Status != 201 || len(got) != 1 || got[0].Offset != 5 {
			t.Errorf("%s: %+v, %v", name, e, got)
		}
	}
	c, _ := talk(t, says(` [ {"index":1,"x":{"y":[1]}} , {"index":0,"status":"queued"} ] `))
	if got, err := c.Push(t.Context(), testScope(t), b, Mark{}, b.Mark(), nil); err != nil || got[0].Status != PushQueued || got[1].Status != PushFailed {
		t.Errorf("%v, %v", got, err)
	}
}

// Chunks come out of a pool, which may forget them at any time (under the race
// detector it does so at random): a piece and its header each. No record takes
// anything of its own.
func TestAddDoesNotAllocate(t *testing.T) {
	b := NewPushBody()
	defer b.Release()
	r := &batch.Record{Timestamp: 1, Key: []byte("key"), Value: make([]byte, 1000), Headers: []batch.Header{{Key: []byte("h"), Value: []byte("v")}}}
	fill := func() {
		b.Truncate(Mark{})
		for range 100 {
			b.Add("orders", 3, r)
		}
	}
	fill()
	if n, most := testing.AllocsPerRun(20, fill), 2*len(b.chunks); most > 20 || n > float64(most) {
		t.Errorf("%v allocations for 100 records in %d chunks", n, len(b.chunks))
	}
}

// The key of an idempotent producer's record is the item's transactionId (B3).
func TestAddKeyed(t *testing.T) {
	b := NewPushBody()
	defer b.Release()
	r, key := record("k", "v"), ProducerKey{ID: 1<<63 - 1, Epoch: -1, Partition: 3, Sequence: 1<<31 - 1}
	b.AddKeyed("orders", 3, r, key)
	want := `,{"queue":"orders","partition":"3","transactionId":"qe:9223372036854775807:-1:3:2147483647","payload":{"k":"aw==","v":"dg=="}}`
	if got := string(encodedBody(b)); got != want {
		t.Errorf("%s", got)
	}
	if n := testing.AllocsPerRun(20, func() {
		b.Truncate(Mark{})
		b.AddKeyed("orders", 3, r, key)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestABodySurvivesItsRefusal(t *testing.T) {
	t.Parallel()
	first := true
	c, _ := talk(t, func(w http.ResponseWriter, _ *http.Request) {
		if first {
			first = false
			w.WriteHeader(413)
			return
		}
		_, _ = io.WriteString(w, `[{"index":0,"status":"queued","offset":3}]`)
	})
	b := NewPushBody()
	defer b.Release()
	b.Add("q", 0, record("k", "v"))
	_, err := c.Push(t.Context(), testScope(t), b, Mark{}, b.Mark(), nil)
	mustError(t, err, KindStatus)
	got, err := c.Push(t.Context(), testScope(t), b, Mark{}, b.Mark(), nil)
	if err != nil || got[0].Offset != 3 {
		t.Error(got, err)
	}
}

func TestADetachedSourceReadsNothing(t *testing.T) {
	t.Parallel()
	s := newSource([]byte("ab"), nil, []byte("cd"))
	r, _ := s.open()
	p := make([]byte, 3)
	if n, err := r.Read(p); n != 3 || err != nil {
		t.Error(n, err)
	}
	s.detach()
	if n, err := r.Read(p); n != 0 || !errors.Is(err, errDetached) {
		t.Error(n, err)
	}
	whole, err := io.ReadAll(&sourceReader{source: newSource([]byte("ab"), nil, []byte("cd"))})
	if string(whole) != "abcd" || err != nil {
		t.Error(string(whole), err)
	}
}

func decodePush(r io.Reader, results []PushResult) error {
	return new(pushReader).read(r, 1<<20, results)
}

// An answer reads the same however it comes, and takes no memory for an item.
func TestPushAnswersComeInPieces(t *testing.T) {
	const items = 3000
	var answer []byte
	for i := range items {
		answer = append(answer, `,{"index":`+strconv.Itoa(items-1-i)+`,"message_id":"0190\u0041","x":[1,{"y":"]}"}],"queueName":"orders","status":"queued","offset":`+strconv.Itoa(i)+`}`...)
	}
	answer[0] = '['
	answer = append(answer, ']', ' ')
	results := make([]PushResult, items)
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(answer), "bytes": iotest.OneByteReader(bytes.NewReader(answer)), "the end with data": iotest.DataErrReader(bytes.NewReader(answer)),
	} {
		if err := decodePush(r, results); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, r := range results {
			if r != (PushResult{PushQueued, int64(items - 1 - i)}) {
				t.Fatalf("%s: item %d is %v", name, i, r)
			}
		}
	}
	r, in := &pushReader{}, bytes.NewReader(nil)
	if n := testing.AllocsPerRun(10, func() {
		in.Reset(answer)
		if err := r.read(in, 1<<20, results); err != nil {
			t.Fatal(err)
		}
	}); n > 10 {
		t.Errorf("%v allocations for %d items", n, items)
	}
}

// Answers that stop in the middle of the connection are not the cell's words.
func TestAPushAnswerThatStops(t *testing.T) {
	t.Parallel()
	c, _ := talk(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `[{"index":0,"status":"queued","offset":3}`)
	})
	b := NewPushBody()
	defer b.Release()
	b.Add("q", 0, record("k", "v"))
	_, err := c.Push(t.Context(), testScope(t), b, Mark{}, b.Mark(), nil)
	mustError(t, err, KindTransport)
}
