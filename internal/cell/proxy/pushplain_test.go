package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// plainLimits are tight, so that bodies meet them.
var plainLimits = []control.Limits{
	{},
	{MaxBatchItems: control.AtMost(2)},
	{MaxPayloadBytes: control.AtMost(24)},
	{MaxBatchItems: control.AtMost(3), MaxPayloadBytes: control.AtMost(40)},
}

// decodeAny is decode without its way for plain bodies.
func (b *pushBody) decodeAny(body []byte, limits control.Limits) *refusal {
	b.reset()
	b.limits = limits
	if f := b.any(body); f != nil {
		return f
	}
	return b.judged()
}

// samePush holds both ways to read a body against each other, and says whether
// it was plain.
func samePush(t *testing.T, body []byte) bool {
	t.Helper()
	before := bytes.Clone(body)
	var long, short, bare pushBody
	for i, limits := range plainLimits {
		want, got := long.decodeAny(body, limits), short.decode(body, limits)
		if (want == nil) != (got == nil) || want != nil && *want != *got {
			t.Fatalf("%q, limits %d: %+v, the long way %+v", body, i, got, want)
		}
		if want, got := described(&long), described(&short); got != want {
			t.Fatalf("%q, limits %d:\n%s\nthe long way\n%s", body, i, got, want)
		}
	}
	if !bytes.Equal(body, before) {
		t.Fatalf("%q was changed", before)
	}
	bare.reset()
	return bare.plain(body)
}

func described(b *pushBody) string {
	s := fmt.Sprint(b.count, b.big, b.bigSize, b.wrong, b.hasItems)
	for _, it := range b.items {
		s += fmt.Sprintf("\n%q %q %q %q", it.Queue, it.Partition, it.TransactionID, it.Payload)
	}
	return s
}

var plainSeeds = []string{
	`{"items":[]}`,
	`{"items":[{"queue":"orders","partition":"2","payload":{"k":"aWQtMQ==","t":1790000000123,"v":"eyJhIjoxfQ=="}}]}`,
	`{"items":[{"queue":"o","partition":"0","transactionId":"qe:1000:0:0:41","payload":{"k":null,"v":""}},{"queue":"o","partition":"0","transactionId":"qe:1000:0:0:42","payload":{"h":[{"k":"a","v":null}],"k":null,"v":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}]}`,
	`{"items":[{"queue":"o","partition":"0","payload":[]},{"queue":"p","partition":"1","payload":[1,-2,0,{"a":{},"b":[true,false,null]}]}]}`,
	`{"items":[{"queue":"o","partition":"0","transactionId":"","payload":-0}]}`,
	`{"items":[{"queue":"","partition":"0","payload":1},{"queue":"q","partition":"","payload":1}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":123456789012345678901234567890}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"a text that is longer than one word"}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"` + strings.Repeat("a text for wide registers", 20) + `"}]}`,
}

// oddSeeds are what plain must leave to the long way.
var oddSeeds = []string{
	`{"items":[{"queue":"q","partition":"0","payload":1}]} `,
	`{"items":[{"queue":"q","partition":"0","payload":1}]}x`,
	`{"items":[{"queue":"q","partition":"0","payload":1}],"items":[]}`,
	`{"items":[{"queue":"q","partition":"0","payload":1},]}`,
	`{"items":[{"queue":"q","partition":"0","payload":1}`,
	`{"items":[{"queue":"q","partition":"0","payload":1,"payload":2}]}`,
	`{"items":[{"queue":"q","queue":"r","partition":"0","payload":1}]}`,
	`{"items":[{"partition":"0","queue":"q","payload":1}]}`,
	`{"items":[{"queue":"q","payload":1}]}`,
	`{"items":[{"queue":"q","partition":null,"payload":1}]}`,
	`{"items":[{"queue":"q","partition":"0","transactionId":null,"payload":1}]}`,
	`{"items":[{"queue":"q","partition":"0","transactionId":5,"payload":1}]}`,
	`{"items":[{"queue":"\u0071","partition":"0","payload":1}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"\ud800"}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"\ud83d\ude00"}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"` + "\xff" + `"}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"` + strings.Repeat("a", 200) + "\xff" + `"}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"` + strings.Repeat("a", 200) + "\n" + `"}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"` + strings.Repeat("a", 200) + `\"` + `"}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"` + strings.Repeat("a", 200) + `\x"}]}`,
	`{"items":[{"queue":"q","partition":"0","transactionId":"` + strings.Repeat("a", 200) + `\u0041","payload":1}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":"é"}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":01}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":-}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":1.5e3}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":1.}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":nul}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":[1,]}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":{"a"}}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":[1}}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}]}`,
	`{"items":[{"queue":"q","partition":"0","payload":` + strings.Repeat("[", 30) + `}]}`,
	`{"items":[{"queue":"q","partition":"0"}]}`, `{"items":[5]}`, `{"items":{}}`, `{"items":[`, `{"items":[]`, `{}`, `[]`, ``,
}

func TestPlainPushes(t *testing.T) {
	for _, body := range plainSeeds {
		if !samePush(t, []byte(body)) {
			t.Errorf("%q is not taken for plain", body)
		}
	}
	for _, body := range oddSeeds {
		if samePush(t, []byte(body)) {
			t.Errorf("%q is taken for plain", body)
		}
	}
}

// TestPlainPushesBroken cuts bodies everywhere, and changes each byte of them
// into others that mean something.
func TestPlainPushesBroken(t *testing.T) {
	for _, seed := range append(plainSeeds[1:4:4], oddSeeds[1:3]...) {
		for i := range seed {
			samePush(t, []byte(seed[:i]))
			samePush(t, []byte(seed[:i]+seed[i+1:]))
			for _, c := range []byte("\"\\{},:0- \n\x7f\xc3") {
				changed := []byte(seed)
				changed[i] = c
				samePush(t, changed)
				samePush(t, []byte(seed[:i]+string(c)+seed[i:]))
			}
		}
	}
}

// TestPlainPushesMixed puts parts of bodies together at random.
func TestPlainPushesMixed(t *testing.T) {
	parts := []string{
		`{"items":[`, `]}`, `{`, `}`, `[`, `]`, `,`, `:`, `"queue":"q"`, `"partition":"0"`, `"transactionId":"qe:1:0:0:7"`, `"payload":`,
		`{"k":null,"v":"AAAA"}`, `{"queue":"q","partition":"0","payload":1}`, `{"queue":"r","partition":"0","payload":"x"}`,
		`{"queue":"q","partition":"0","transactionId":"k","payload":{}}`, `12`, `-1`, `"text"`, `null`, `true`, `" "`, ` `, `"\u00e9"`,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	plain := 0
	for range 8_000 {
		body := `{"items":[`
		for n := rng.IntN(6); n > 0; n-- {
			if body += parts[12+rng.IntN(4)]; n > 1 || rng.IntN(9) == 0 {
				body += ","
			}
		}
		for n := rng.IntN(3) * rng.IntN(3); n > 0; n-- {
			body += parts[rng.IntN(len(parts))]
		}
		if samePush(t, []byte(body+`]}`)) {
			plain++
		}
	}
	if plain < 300 {
		t.Errorf("%d bodies were plain: the test says little", plain)
	}
}

// FuzzPlainPush does so for any body.
func FuzzPlainPush(f *testing.F) {
	for _, seed := range append(plainSeeds, oddSeeds...) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { samePush(t, body) })
}
