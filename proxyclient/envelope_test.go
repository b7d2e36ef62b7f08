package proxyclient

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/edge/batch"
)

func TestPayloads(t *testing.T) {
	t.Parallel()
	const native = "native"
	for _, x := range []struct{ payload, want string }{
		// Envelopes: key|value|timestamp|headers, in any member order.
		{`{"k":null,"v":null}`, `<nil>|<nil>|9|`},
		{`{"k":"","v":""}`, `||9|`},
		{`{"v":"eyJhIjoxfQ==","t":1790000000123,"k":"aWQtMQ=="}`, `id-1|{"a":1}|1790000000123|`},
		{` { "k" : "YQ==" , "v" : "Yg==" , "h" : [ { "k" : "x" , "v" : "YQ==" } ] , "t" : -7 } `, `a|b|-7|x=a;`},
		{`{"h":[],"k":"YWI=","v":"YWJj"}`, `ab|abc|9|`},
		{`{"h":[{"k":"","v":null},{"v":"","k":"\u00e9\n"},{"k":"","v":"//8="}],"k":null,"v":"+/+/"}`, "<nil>|\xfb\xff\xbf|9|=<nil>;é\n=;=\xff\xff;"},
		{`{"\u006b":"YQ==","v":"\/\/8="}`, "a|\xff\xff|9|"},
		{`{"k":"YQ==","v":"` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("0123456789", 30))) + `"}`, `a|` + strings.Repeat("0123456789", 30) + `|9|`},
		{`{"k":"YQ==","k":"Yg==","v":null}`, `b|<nil>|9|`},
		{`{"k":null,"v":null,"t":-9223372036854775808}`, `<nil>|<nil>|-9223372036854775808|`},
		// Not quite envelopes.
		{`{"k":null}`, native},
		{`{"v":null}`, native},
		{`{}`, native},
		{`{"k":null,"v":null,"x":1}`, native},
		{`{"K":null,"v":null}`, native},
		{`{"k":1,"v":null}`, native},
		{`{"k":null,"v":true}`, native},
		{`{"k":null,"v":{}}`, native},
		{`{"k":null,"v":null,"t":null}`, native},
		{`{"k":null,"v":null,"t":"5"}`, native},
		{`{"k":null,"v":null,"t":5.0}`, native},
		{`{"k":null,"v":null,"t":5e0}`, native},
		{`{"k":null,"v":null,"t":9223372036854775808}`, native},
		{`{"k":null,"v":null,"h":null}`, native},
		{`{"k":null,"v":null,"h":{}}`, native},
		{`{"k":null,"v":null,"h":[1]}`, native},
		{`{"k":null,"v":null,"h":[{"k":"a"}]}`, native},
		{`{"k":null,"v":null,"h":[{"v":null}]}`, native},
		{`{"k":null,"v":null,"h":[{"k":"a","v":null,"x":1}]}`, native},
		{`{"k":null,"v":null,"h":[{"k":null,"v":null}]}`, native},
		{`{"k":null,"v":null,"h":[{"k":"a","v":"?"}]}`, native},
		{`{"k":null,"v":null,"h":[{"k":"a","v":7}]}`, native},
		{`{"k":null,"v":"a"}`, native},
		{`{"k":null,"v":"YQ"}`, native},
		{`{"k":null,"v":"YQ="}`, native},
		{`{"k":null,"v":"YQ==YQ=="}`, native},
		{`{"k":null,"v":"YR=="}`, native},
		{`{"k":null,"v":"YWJ="}`, native},
		{`{"k":null,"v":"===="}`, native},
		{`{"k":null,"v":"Y==="}`, native},
		{`{"k":null,"v":"YQ=a"}`, native},
		{`{"k":null,"v":"YW\nJj"}`, native},
		{`{"k":null,"v":"YWJj\n\n\n\n"}`, native},
		{`{"k":null,"v":"-_-_"}`, native},
		{`{"k":null,"v":"YWJ\u006a"}`, `<nil>|abc|9|`},
		{`{"k":null,"v":"` + strings.Repeat("YWJj", 20) + `YW-j"}`, native},
		{`{"k":null,"v":"` + strings.Repeat("YWJj", 20) + `\r\n\r\n"}`, native},
		// Native messages, compact.
		{`null`, `<nil>|null|9|`},
		{`true`, `<nil>|true|9|`},
		{`-1.50e+3`, `<nil>|-1.50e+3|9|`},
		{`"a \" b"`, `<nil>|"a \" b"|9|`},
		{" [ 1 ,\t\"x  y\" ,\r\n{ \"b\" : { } , \"a\" : null } ] ", `<nil>|[1,"x  y",{"b":{},"a":null}]|9|`},
		{`{"text":"\\","next":" \\\" "}`, `<nil>|{"text":"\\","next":" \\\" "}|9|`},
	} {
		var d decoder
		payload := strings.TrimSpace(x.payload)
		if err := d.decode([]byte(`{"payload":` + x.payload + `,"offset":3,"ts":"1970-01-01T00:00:00.009Z"}`)); err != nil {
			t.Errorf("%s: %v", x.payload, err)
			continue
		}
		want := x.want
		if want == native {
			want = `<nil>|` + payload + `|9|`
		}
		if got := line(&d.record); got != want {
			t.Errorf("%s\n got %s\nwant %s", x.payload, got, want)
		}
	}
}

func line(r *batch.Record) string {
	var all []got
	_ = collect(&all)(0, r)
	g := all[0]
	return g.key + "|" + g.value + "|" + itoa(g.ts) + "|" + g.headers
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// What Add writes is what payload reads.
func TestEnvelopeRoundTrip(t *testing.T) {
	t.Parallel()
	var d decoder
	for size := range 200 {
		value := make([]byte, size)
		for i := range value {
			value[i] = byte(i*7 + size)
		}
		r := &batch.Record{Timestamp: int64(size) - 1, Key: value[:size/2], Value: value, Headers: []batch.Header{{Key: []byte("n"), Value: value}}}
		b := NewPushBody()
		b.Add("q", 0, r)
		item := string(encodedBody(b))
		payload := item[strings.Index(item, `"payload":`)+len(`"payload":`) : len(item)-1]
		if err := d.decode([]byte(`{"offset":1,"payload":` + payload + `}`)); err != nil {
			t.Fatal(err)
		}
		if line(&d.record) != line(r) {
			t.Fatalf("size %d\n%s\n%s", size, line(&d.record), line(r))
		}
		b.Release()
	}
}

// The vector decoder must agree with the library's strict one on lengths around its blocks
// and on a bad byte at every place.
func TestBase64AgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 2, 3, 4, 5, 31, 32, 33, 34, 35, 36, 47, 48, 49, 57, 71, 72, 73, 95, 96, 97, 122} {
		raw := make([]byte, size)
		for i := range raw {
			raw[i] = byte(i*31 + size*7)
		}
		good := base64.StdEncoding.EncodeToString(raw)
		check(t, good)
		for at := range good {
			for _, c := range []byte{'=', '-', '_', '\n', '\r', ' ', 0, 0x80, 0xff, '.', '/', '@', '[', '`', '{', 'A'} {
				bad := []byte(good)
				bad[at] = c
				check(t, string(bad))
			}
		}
		if size > 0 {
			check(t, good[:len(good)-1])
		}
	}
}

func check(t *testing.T, s string) {
	t.Helper()
	got, ok := appendDecoded(make([]byte, 0, len(s)), []byte(s))
	want, err := base64.StdEncoding.Strict().DecodeString(s)
	wantOK := err == nil && !strings.ContainsAny(s, "\r\n")
	if ok != wantOK || ok && string(got) != string(want) {
		t.Fatalf("%q: %v, library %v", s, ok, wantOK)
	}
}

func TestAppendTimes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		`"2026-10-02T09:00:00Z"`:              ts123 - 123,
		`"2026-10-02T09:00:00.1Z"`:            ts123 - 23,
		`"2026-10-02T09:00:00.123Z"`:          ts123,
		`"2026-10-02T09:00:00.123999Z"`:       ts123,
		`"2026-10-02T09:00:00.123999999999Z"`: ts123,
		`"1970-01-01T00:00:00Z"`:              0,
		`"9999-12-31T23:59:59.999Z"`:          253402300799999,
		`"2024-02-29T00:00:00Z"`:              1709164800000,
		`"2023-02-29T00:00:00Z"`:              -1,
		`"2026-13-02T09:00:00Z"`:              -1,
		`"2026-00-02T09:00:00Z"`:              -1,
		`"2026-10-00T09:00:00Z"`:              -1,
		`"2026-10-02T24:00:00Z"`:              -1,
		`"2026-10-02T09:60:00Z"`:              -1,
		`"2026-10-02T09:00:60Z"`:              -1,
		`"1969-12-31T23:59:59.999Z"`:          -1,
		`"2026-10-02T09:00:00.Z"`:             -1,
		`"2026-10-02T09:00:00.12x3Z"`:         -1,
		`"2026-10-02T09:00:00+00:00"`:         -1,
		`"2026-10-02 09:00:00Z"`:              -1,
		`"2026-10-02T09:00:00"`:               -1,
		`"2026-10-02T09:00Z"`:                 -1,
		`1790931600123`:                       -1,
		`null`:                                -1,
		`""`:                                  -1,
		``:                                    -1,
	} {
		if got := appendTime([]byte(in)); got != want {
			t.Errorf("%s: %d, want %d", in, got, want)
		}
	}
}

func TestIntValue(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63,
	} {
		if got, ok := intValue([]byte(in)); !ok || got != want {
			t.Errorf("%s: %d, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "-", "+1", "01", "-01", "1.0", "1e3", "9223372036854775808", "-9223372036854775809", "99999999999999999999", "x", "1 "} {
		if got, ok := intValue([]byte(in)); ok {
			t.Errorf("%q: %d", in, got)
		}
	}
}
