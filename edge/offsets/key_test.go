package offsets

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The names of the contract (cell-http §4.8).
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ group, topic, key string }{
		{"g1", "orders", "qk:group:g1:orders:7"},
		{"a.b_c-D9", "a.b_c-D9", "qk:group:a.b_c-D9:a.b_c-D9:7"},
		{"a:b", "t", "qk:group:a%3Ab:t:7"},
		{"a%3Ab", "t", "qk:group:a%253Ab:t:7"},
		{"é/ \x00", "t", "qk:group:%C3%A9%2F%20%00:t:7"},
		{"\xff", "t", "qk:group:%FF:t:7"},
	} {
		if got := Key(x.group, x.topic, 7); got != x.key {
			t.Errorf("%q, %q: %s, want %s", x.group, x.topic, got, x.key)
		}
	}
	if got := IndexKey("a:b"); got != "qk:groups:a%3Ab" {
		t.Error(got)
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	for _, n := range []int{490, 497, 498, 499, 500, 501, 600} {
		group := strings.Repeat("g", n)
		key := Key(group, "t", 3)
		if got := Fits(group, "t", 3); got != (len(key) <= 512) {
			t.Errorf("a key of %d bytes: fits %v", len(key), got)
		}
		if got := GroupFits(group); got != (len(IndexKey(group)) <= 512) {
			t.Errorf("an index key of %d bytes: fits %v", len(IndexKey(group)), got)
		}
	}
	if !Fits("g", "t", 2147483647) || Fits(strings.Repeat("é", 200), "t", 0) {
		t.Error("escapes and digits are not counted")
	}
}

// names have the bytes that could make two keys one, and all others.
func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune(":%/.-_ 0123aAé\x00%3A")), 1, 8, -1),
		rapid.StringN(1, 6, -1),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 6), func(b []byte) string { return string(b) }),
	)
}

// No two places of two groups share a key, no group's offsets lie among another
// group's, and every key reads back as what it was made of.
func TestKeysNeverMeet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g1, g2 := names().Draw(t, "group"), names().Draw(t, "other group")
		t1, t2 := names().Draw(t, "topic"), names().Draw(t, "other topic")
		p1, p2 := rapid.Int32Min(0).Draw(t, "partition"), rapid.Int32Range(0, 12).Draw(t, "other partition")
		k1, k2 := Key(g1, t1, p1), Key(g2, t2, p2)
		if same := g1 == g2 && t1 == t2 && p1 == p2; (k1 == k2) != same {
			t.Fatalf("%q and %q", k1, k2)
		}
		if in := strings.HasPrefix(k1, groupPrefix(g2)); in != (g1 == g2) {
			t.Fatalf("%q begins with the prefix of %q: %v", k1, g2, in)
		}
		if (IndexKey(g1) == IndexKey(g2)) != (g1 == g2) || strings.HasPrefix(IndexKey(g1), offsetPrefix) {
			t.Fatalf("%q and %q", IndexKey(g1), IndexKey(g2))
		}
		if p, ok := placeOf(strings.TrimPrefix(k1, groupPrefix(g1))); !ok || p != (Place{t1, p1}) {
			t.Fatalf("%q reads back as %v, %v", k1, p, ok)
		}
		if g, ok := groupOf(IndexKey(g1)); !ok || g != g1 {
			t.Fatalf("%q reads back as %q, %v", IndexKey(g1), g, ok)
		}
		for i := range len(k1) {
			if c := k1[i]; c != ':' && c != '%' && !plain(c) {
				t.Fatalf("%q has a byte that is not plain", k1)
			}
		}
		if Fits(g1, t1, p1) != (len(k1) <= maxKey) {
			t.Fatalf("a key of %d bytes", len(k1))
		}
	})
}

// A key that this package would not write is nobody's.
func TestKeysOfOthers(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{
		"", "t", ":", "t:", "t:x", "t:-1", "t:+1", "t:01", "t:1:2", "t:2147483648", "t%3:1", "t%3a:1", "t%41:1", "t/:1", "t:1 ",
	} {
		if p, ok := placeOf(rest); ok {
			t.Errorf("%q reads as %v", rest, p)
		}
	}
	for _, key := range []string{"qk:group:g", "x", "qk:groups:a:b", "qk:groups:%", "qk:groups:%zz"} {
		if g, ok := groupOf(key); ok {
			t.Errorf("%q reads as %q", key, g)
		}
	}
}

func FuzzValues(f *testing.F) {
	for _, seed := range []string{
		`{"offset":9,"metadata":"","ts":1790000000000}`, `{"offset":9,"metadata":null,"qid":"x"}`, `{"offset":null}`,
		`{"offset":1.5}`, `{"offset":"9"}`, `{}`, `null`, `[]`, `7`, `{"offset":-1,"extra":{}}`, `{"pt":"consumer"}`, "\xff",
	} {
		f.Add([]byte(seed), seed)
	}
	f.Fuzz(func(t *testing.T, b []byte, key string) {
		if o, err := decode(b); err != nil && o != (Stored{}) {
			t.Error("an unreadable row has an offset")
		}
		_ = protocolType(b)
		if p, ok := placeOf(key); ok && !strings.HasSuffix(Key("g", p.Topic, p.Partition), ":"+key) {
			t.Errorf("%q reads as %v", key, p)
		}
		if g, ok := groupOf(key); ok && IndexKey(g) != key {
			t.Errorf("%q reads as %q", key, g)
		}
	})
}
