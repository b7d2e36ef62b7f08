package main

import (
	"slices"
	"strings"
	"testing"
)

const text = `# A remark.

> list
one
two

# Between.
> show one
> show two
two: here
# The end.
`

func TestParseAndRender(t *testing.T) {
	t.Parallel()
	s, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.commands) != 3 || s.commands[0].text != "list" || !slices.Equal(s.commands[0].want, []string{"one", "two"}) || s.commands[1].want != nil {
		t.Fatalf("%+v", s)
	}
	for i := range s.commands {
		s.commands[i].got = s.commands[i].want
	}
	if got := s.render(); got != text {
		t.Errorf("rendered:\n%s", got)
	}
	for _, wrong := range []string{"one\n> list\n", "> list\n\none\n"} {
		if _, err := parse(wrong); err == nil {
			t.Errorf("%q is read as a scenario", wrong)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		got    [3][]string
		failed int
	}{
		{[3][]string{{"one", "two"}, nil, {"two: here"}}, 0},
		{[3][]string{{"one"}, nil, {"two: here"}}, 1},
		{[3][]string{{"two", "one"}, {"more"}, {"two: there"}}, 3},
	} {
		s, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.commands {
			s.commands[i].got = c.got[i]
		}
		var out strings.Builder
		passed, failed := s.judge("x", &out)
		if failed != c.failed || passed+failed != 3 || strings.Count(out.String(), "FAIL") != c.failed {
			t.Errorf("%v: %d passed, %d failed\n%s", c.got, passed, failed, out.String())
		}
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	names := map[string]string{"port": "4321", "noon": "2026-01-01T12:00:00.432"}
	for said, want := range map[string]string{
		"at localhost:4321  ":                          "at localhost:{port}",
		"at 2026-01-01T12:00:00.432":                   "at {noon}",
		"m-6e0ab0ba-4a1d-4a6e-8a24-57a6aa6e1c0e stays": "m-<uuid> stays",
		"Topic: a\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\t":  "Topic: a\tTopicId: <id>",
		"# of records":                                 `\# of records`,
		"x\n\tat a.b.C(D.java:1)\n\tat a.b.E(F.java:2)\n\t... 3 more\nCaused by: y":              "x\n    at …\nCaused by: y",
		"Id                 \tStart\tMs\n3001473667102157311\t1796003017844\t173\t1796003017844": "Id\tStart\tMs\n<id>\t<time>\t<ms>\t<time>",
		"a\n\nb": "a\nb",
	} {
		if got := strings.Join(scrub(strings.Split(said, "\n"), names), "\n"); got != want {
			t.Errorf("%q\nis   %q\nwant %q", said, got, want)
		}
	}
}
