package proxyclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind tells the four ways a call can fail apart (§2.2).
type Kind uint8

// The failure kinds.
const (
	KindTransport    Kind = iota + 1 // DNS, connect, TLS, timeout, reset, a cut body
	KindStatus                       // an answer outside 200–299
	KindBody                         // a 2xx that does not parse or line up with the question
	KindPrecondition                 // a 200 that says a required conditional write lost (§4.6)
)

// String is fit for a log field or a label.
func (k Kind) String() string {
	switch k {
	case KindTransport:
		return "transport"
	case KindStatus:
		return "status"
	case KindBody:
		return "body"
	case KindPrecondition:
		return "precondition"
	}
	return "unknown"
}

const (
	maxErrorText  = 4 << 10 // bytes of a refusal's body that are kept
	maxCode       = 64      // bytes of a refusal's code
	wireBodyChars = 200     // characters of the body inside WireText (§2.2)
	wireChars     = 256     // characters of WireText (§2.2)
)

// ErrNoTimes is wrapped by the failure of OffsetsForTimes on a cell that has
// no such route (HTTP 404, §3.6).
var ErrNoTimes = errors.New("the cell cannot answer offsets for times")

// Error is a failed call. It never holds the bearer: an answer that echoes it
// is scrubbed before it is kept.
type Error struct {
	Kind       Kind
	Status     int           // HTTP status, 0 for a transport failure before one was read
	Code       string        // the envelope's code, "" when it has none; at most 64 of [a-z0-9_.-]
	Text       string        // the body of a refusal, at most 4 KiB of valid UTF-8
	RetryAfter time.Duration // −1 absent; only the integer seconds form is read
	Route      string        // one of Routes
	Err        error         // what lies below: a net error, a decoder's complaint, ErrNoTimes

	// The verdict of KindPrecondition (§4.6); each may be missing from the
	// answer and is then 0, "" or nil.
	FailedIndex int    // ordinal of the lost operation in the call
	Reason      string // exists, version, absent
	Version     int64  // the winner's
	Value       []byte // the winner's, JSON
}

// AsError finds the *Error in err's chain.
func AsError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// Unwrap gives the cause, so that errors.Is sees context errors and ErrNoTimes.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the call ran out of time.
func (e *Error) Timeout() bool {
	var ne net.Error
	return errors.Is(e.Err, context.DeadlineExceeded) || (errors.As(e.Err, &ne) && ne.Timeout())
}

// Error is for logs: it may name addresses, so it is not for clients.
func (e *Error) Error() string {
	switch e.Kind {
	case KindStatus:
		return "cell " + e.Route + ": " + e.WireText()
	case KindPrecondition:
		return fmt.Sprintf("cell %s: operation %d lost its condition (%s)", e.Route, e.FailedIndex, scrub(e.Reason))
	}
	text := "cell " + e.Route + ": " + e.Kind.String() + " failure"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return cutChars(scrub(text), 2*wireChars)
}

// WireText is what a client may read in an error_message (§2.2): bounded, and
// free of escape sequences and control characters. Only a refusal's own words
// are passed on; the other kinds could name addresses inside the installation.
func (e *Error) WireText() string {
	switch e.Kind {
	case KindStatus:
		return e.statusText()
	case KindBody:
		return "the cell's answer could not be read"
	case KindPrecondition:
		return "a conditional write lost"
	}
	if e.Timeout() {
		return "the cell did not answer in time"
	}
	return "the cell could not be reached"
}

func (e *Error) statusText() string {
	body := cutChars(strings.TrimSpace(e.Text), wireBodyChars)
	head := fmt.Sprintf("HTTP %d: ", e.Status)
	if e.RetryAfter >= 0 {
		head = fmt.Sprintf("HTTP %d (retry after %dms): ", e.Status, e.RetryAfter.Milliseconds())
	}
	return cutChars(scrub(head+body), wireChars)
}

// cutChars cuts s to n characters, saying so with an ellipsis.
func cutChars(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

// scrub removes terminal escape sequences and turns every other control
// character into a space, so that a body can neither paint a terminal nor
// start a log line of its own.
func scrub(s string) string {
	if strings.IndexFunc(s, unicode.IsControl) < 0 {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		if n := escapeLen(s[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if unicode.IsControl(r) {
			r = ' '
		}
		out.WriteRune(r)
		i += size
	}
	return out.String()
}

// escapeLen is the length of the complete ANSI sequence s begins with: CSI
// (ESC [ … final), OSC (ESC ] … BEL or ESC \) or a two-byte escape.
func escapeLen(s string) int {
	if len(s) < 2 || s[0] != 0x1b {
		return 0
	}
	switch s[1] {
	case '[':
		return csiLen(s)
	case ']':
		return oscLen(s)
	}
	if s[1] >= 0x40 && s[1] <= 0x5f {
		return 2
	}
	return 0
}

func csiLen(s string) int {
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 || s[i] > 0x3f {
			return 0
		}
	}
	return 0
}

func oscLen(s string) int {
	for i := 2; i < len(s); i++ {
		if s[i] == 0x07 {
			return i + 1
		}
		if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
			return i + 2
		}
	}
	return 0
}
