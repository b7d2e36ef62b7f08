package proxyclient

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// sameItem holds the way for stored items against the one for all plain ones, and
// says whether it took b.
func sameItem(t *testing.T, b []byte) bool {
	t.Helper()
	n, index, result := storedItem(b)
	if n == 0 {
		return false
	}
	if wantN, wantIndex, want := quickItem(b); n != wantN || index != wantIndex || result != want {
		t.Fatalf("%q: %d bytes, index %d, %+v; the long way %d, %d, %+v", b, n, index, result, wantN, wantIndex, want)
	}
	return true
}

const storedAnswer = `{"index":12,"message_id":"0190abcd-0000-7000-8000-000000000000","transaction_id":"qe:1000:0:2:41","queueName":"orders","status":"queued","offset":1234}`

// TestStoredItems breaks answers everywhere: what is taken means the same as it
// did, and what is no answer of a stored item is not taken.
func TestStoredItems(t *testing.T) {
	taken := []string{
		storedAnswer, storedAnswer + `,{"index":13`, strings.Replace(storedAnswer, "1234}", "0}", 1), strings.Replace(storedAnswer, "orders", "", 1),
		strings.Replace(storedAnswer, "1234}", "999999999999999999}", 1),
	}
	for _, b := range taken {
		if !sameItem(t, []byte(b)) {
			t.Errorf("%q is not taken", b)
		}
	}
	for _, b := range []string{
		"", "{", storedAnswer[:len(storedAnswer)-1], strings.Replace(storedAnswer, "queued", "duplicate", 1),
		strings.Replace(storedAnswer, "1234}", "-1}", 1), strings.Replace(storedAnswer, "1234}", "01}", 1), strings.Replace(storedAnswer, "1234}", "1.5}", 1),
		strings.Replace(storedAnswer, "1234}", "9999999999999999999}", 1), strings.Replace(storedAnswer, "1234}", `1234,"offset":5}`, 1),
		strings.Replace(storedAnswer, "orders", `or\"ders`, 1), strings.Replace(storedAnswer, "orders", "or\nders", 1), strings.Replace(storedAnswer, "orders", "é", 1),
		strings.Replace(storedAnswer, "12,", ",", 1), strings.Replace(storedAnswer, ",", ", ", 1), strings.Replace(storedAnswer, "1234}", "}", 1),
	} {
		if sameItem(t, []byte(b)) {
			t.Errorf("%q is taken", b)
		}
	}
	const odd = "\"\\{},:0159- \n\x7f\xc3aq"
	rng := rand.New(rand.NewPCG(7, 8))
	whole := 0
	for range 20_000 {
		b := []byte(taken[rng.IntN(len(taken))])
		for range 1 + rng.IntN(2) {
			b[rng.IntN(len(b))] = odd[rng.IntN(len(odd))]
		}
		if sameItem(t, b[:len(b)-rng.IntN(3)*rng.IntN(9)]) {
			whole++
		}
	}
	if whole < 1000 {
		t.Errorf("%d broken answers were taken: the test says little", whole)
	}
}

// FuzzStoredItem does so for any bytes.
func FuzzStoredItem(f *testing.F) {
	f.Add([]byte(storedAnswer))
	f.Fuzz(func(t *testing.T, b []byte) { sameItem(t, b) })
}
