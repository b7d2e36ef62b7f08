package tenancy_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/tenancy"
)

const bearer = "qk_sentinel-5f0c7c1e"

// leaks looks for the bearer as text, in hex, and as the list of its bytes.
func leaks(out string) bool {
	hex := fmt.Sprintf("%x", bearer)
	list := strings.Trim(fmt.Sprint([]byte(bearer)), "[]")
	return strings.Contains(out, bearer[3:]) || strings.Contains(strings.ToLower(out), hex[6:]) || strings.Contains(out, list)
}

// inside are the places a Secret may stand in when somebody prints it.
func inside() map[string]any {
	type open struct{ Token tenancy.Secret }
	type closed struct{ token tenancy.Secret }
	type deep struct {
		closed
		p *closed
		m map[string]closed
		l []tenancy.Secret
		a any
	}
	s := tenancy.NewSecret(bearer)
	claim := tenancy.NewClaim(s, "a.example")
	return map[string]any{
		"itself":      s,
		"pointer":     &s,
		"slice":       []tenancy.Secret{s},
		"map":         map[string]tenancy.Secret{"k": s},
		"open":        open{s},
		"closed":      closed{s},
		"closedPtr":   &closed{s},
		"deep":        deep{closed{s}, &closed{s}, map[string]closed{"k": {s}}, []tenancy.Secret{s}, s},
		"interface":   []any{s, &s},
		"claim":       claim,
		"claimPtr":    &claim,
		"claimClosed": struct{ c tenancy.Claim }{claim},
	}
}

func TestSecretPrintsNowhere(t *testing.T) {
	verbs := []string{
		"%v", "%+v", "%#v", "%s", "%q", "%#q", "%x", "%X", "% x", "%#x", "%d", "%o", "%b", "%c", "%U", "%t", "%e", "%p", "%#p", "%T",
		"%20v", "%-5.3s", "%w", "%z", "%[2]v", "no verb",
	}
	for name, v := range inside() {
		for _, verb := range verbs {
			if out := fmt.Sprintf(verb, v); leaks(out) {
				t.Errorf("%s with %s: %s", name, verb, out)
			}
			if out := fmt.Errorf("wrapped: "+verb, v).Error(); leaks(out) {
				t.Errorf("%s in an error with %s: %s", name, verb, out)
			}
			if out := fmt.Sprintf("%d"+verb, v, v); leaks(out) {
				t.Errorf("%s twice with %s: %s", name, verb, out)
			}
		}
		if out := fmt.Sprint(v) + fmt.Sprintln(v, v); leaks(out) {
			t.Errorf("%s printed: %s", name, out)
		}
	}
}

func TestSecretIsNotEncoded(t *testing.T) {
	for name, v := range inside() {
		if out, _ := json.Marshal(v); leaks(string(out)) {
			t.Errorf("%s as JSON: %s", name, out)
		}
		if out, _ := xml.Marshal(v); leaks(string(out)) {
			t.Errorf("%s as XML: %s", name, out)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		if leaks(log.String()) {
			t.Errorf("%s in a log: %s", name, log.String())
		}
	}
}

// A Secret that is an error's cause, or a panic's value, stays hidden.
func TestSecretInErrorsAndPanics(t *testing.T) {
	s := tenancy.NewSecret(bearer)
	err := errors.Join(fmt.Errorf("a: %v", s), fmt.Errorf("b: %w", fmt.Errorf("c %+v", tenancy.NewClaim(s, ""))))
	if leaks(err.Error()) || leaks(fmt.Sprintf("%+v %#v", err, err)) {
		t.Errorf("%v", err)
	}
	defer func() {
		if v := recover(); leaks(fmt.Sprint(v)) {
			t.Error("the panic's value prints")
		}
	}()
	panic(tenancy.NewClaim(s, "a.example"))
}

func TestSecretShowsThatItIsOne(t *testing.T) {
	s := tenancy.NewSecret(bearer)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(verb, s); got != tenancy.Redacted {
			t.Errorf("%s prints %q", verb, got)
		}
	}
	if got, err := json.Marshal(map[string]any{"t": s}); err != nil || !bytes.Contains(got, []byte("redacted")) {
		t.Errorf("JSON is %s, %v", got, err)
	}
}

func TestSecretValue(t *testing.T) {
	var none tenancy.Secret
	empty, s := tenancy.NewSecret(""), tenancy.NewSecret(bearer)
	if none.Reveal() != "" || !none.IsZero() || !empty.IsZero() || !none.Equal(empty) {
		t.Error("no bearer and an empty one differ")
	}
	if s.Reveal() != bearer || s.IsZero() || s.Equal(none) {
		t.Error("a bearer is lost")
	}
	if !s.Equal(tenancy.NewSecret(bearer)) || s.Equal(tenancy.NewSecret(bearer+"x")) {
		t.Error("Equal does not compare the text")
	}
	if got := fmt.Sprint(none, &none, (*tenancy.Secret)(nil)); strings.Contains(got, "PANIC") {
		t.Errorf("an empty Secret prints %q", got)
	}
}
