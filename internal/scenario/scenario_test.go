package scenario

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// echo says what it was told.
type echo struct{}

func (echo) Do(verb string, a Args, out *strings.Builder) error {
	switch verb {
	case "say":
		fmt.Fprintln(out, a.Words, a.Text("x", "none"), a.Number("n", 7), a.Duration("d", time.Second), a.Pointer("x") != nil, a.Pairs)
	case "fail":
		return errors.New("no such command")
	}
	return nil
}

func TestPlay(t *testing.T) {
	for text, want := range map[string]string{
		"# a comment\n\n> nothing\n":               "# a comment\n\n> nothing\n",
		"> say\nwhat was said before\n# on\n> say": "> say\n[] none 7 1s false []\n# on\n> say\n[] none 7 1s false []\n",
		"> say a x=1 t/0=5 n=2 x=3 d=1m":           "> say a x=1 t/0=5 n=2 x=3 d=1m\n[a t/0=5] 3 2 1m0s true [[x 1] [n 2] [x 3] [d 1m]]\n",
	} {
		if got, err := Play(text, echo{}); err != nil || got != want {
			t.Errorf("%q becomes %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"> fail now": "> fail now: no such command", "> say n=many": `> say n=many: strconv.Atoi: parsing "many": invalid syntax`, "> say d=long": `> say d=long: time: invalid duration "long"`,
	} {
		if _, err := Play(text, echo{}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
