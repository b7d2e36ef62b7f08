package proxyclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

var (
	errTooLarge     = errors.New("the answer is larger than its limit")
	errNotAHeader   = errors.New("the credential holds characters no header can carry")
	errBadQueueName = errors.New("a queue name that cannot stand in a path")
)

// buffer is a pooled byte slice: a request body, or an answer that is read
// whole and not kept.
type buffer struct{ b []byte }

// maxPooled is the largest slice a pool keeps, so that one big answer does not
// stay in memory for good. The answer to a full merged push fits.
const maxPooled = 4 << 20

func (c *Client) getBuffer() *buffer {
	if buf, ok := c.buffers.Get().(*buffer); ok {
		return buf
	}
	return &buffer{b: make([]byte, 0, 4<<10)}
}

func (c *Client) putBuffer(buf *buffer) {
	if cap(buf.b) > maxPooled {
		return
	}
	buf.b = buf.b[:0]
	c.buffers.Put(buf)
}

// call is one request whose answer is being read.
type call struct {
	client *Client
	target target
	bearer tenancy.Secret
	began  time.Time
	ctx    context.Context // of the caller
	cancel context.CancelFunc
	body   *source // nil: none
	resp   *http.Response
}

// start sends a request and returns when the head of a 2xx has been read; every
// other end is an *Error. The caller ends the call.
func (c *Client) start(ctx context.Context, t target, claim tenancy.Claim, body *source, wait time.Duration) (*call, error) {
	k := &call{client: c, target: t, bearer: claim.Bearer(), began: time.Now(), body: body, ctx: ctx}
	ctx, k.cancel = context.WithTimeout(ctx, c.timeout+wait)
	req, err := c.request(ctx, t, claim, body)
	if err != nil {
		refusal := k.refusedHere(err)
		k.end()
		return nil, refusal
	}
	k.resp, err = c.transport.RoundTrip(req)
	if err != nil {
		failure := k.failed(KindTransport, causeOf(ctx, err)) // before end, which cancels ctx
		k.end()
		return nil, failure
	}
	if k.resp.StatusCode < 200 || k.resp.StatusCode > 299 {
		refusal := k.refusal()
		k.end()
		return nil, refusal
	}
	if t.head != nil {
		t.head(k.resp.Header)
	}
	return k, nil
}

// end gives everything back. It is called once.
func (k *call) end() {
	if k.resp != nil {
		_ = k.resp.Body.Close()
	}
	k.cancel()
	if k.body != nil {
		k.body.detach()
	}
	if k.client.observe != nil {
		k.client.observe(k.ctx, Done{k.target.name, k.status(), k.began, time.Since(k.began)})
	}
}

func (k *call) status() int {
	if k.resp == nil {
		return 0
	}
	return k.resp.StatusCode
}

// request builds what §2.1 says and nothing else: no User-Agent, no cookies,
// no Accept-Encoding. GetBody lets the transport use a second connection when
// the first was found closed before one byte was written; a POST of which
// anything was written is never repeated.
func (c *Client) request(ctx context.Context, t target, claim tenancy.Claim, body *source) (*http.Request, error) {
	u, err := c.resolve(t)
	if err != nil {
		return nil, err
	}
	req := (&http.Request{
		Method: t.method, URL: u, Host: claim.Host(),
		Header: http.Header{"Content-Type": {"application/json"}, "User-Agent": nil},
	}).WithContext(ctx)
	if bearer := claim.Bearer(); !bearer.IsZero() {
		value := "Bearer " + bearer.Reveal()
		if !headerValue(value) {
			return nil, errNotAHeader
		}
		req.Header["Authorization"] = []string{value}
	}
	if body != nil {
		req.Body, _ = body.open()
		req.GetBody = body.open
		req.ContentLength = int64(body.size)
	}
	return req, nil
}

func (c *Client) resolve(t target) (*url.URL, error) {
	u := *c.base
	u.Path = c.base.Path + t.path
	u.RawQuery = t.query
	if t.path[len(t.path)-1] != '/' {
		if u.RawPath != "" {
			u.RawPath += t.path
		}
		return &u, nil
	}
	if t.tail == "" || t.tail == "." || t.tail == ".." { // would name another resource
		return nil, errBadQueueName
	}
	u.RawPath = c.base.EscapedPath() + t.path + escapeSegment(t.tail) + t.after
	u.Path += t.tail + t.after
	return &u, nil
}

// escapeSegment percent-encodes everything but A-Za-z0-9-._~ (§3.3).
func escapeSegment(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

func headerValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// causeOf names the context's end where that is why the transport failed.
func causeOf(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// failed makes the error of a call. A body failure may quote the answer, and
// an answer may echo what it was sent.
func (k *call) failed(kind Kind, err error) *Error {
	if kind == KindBody && err != nil {
		if text := redact(err.Error(), k.bearer); text != err.Error() {
			err = errors.New(text)
		}
	}
	return &Error{Kind: kind, Status: k.status(), RetryAfter: -1, Route: k.target.name, Err: err}
}

// refusedHere is for a question that cannot be asked. A credential no header
// can carry is one no cell can know: that is a 401, not a transport failure
// that would be tried again.
func (k *call) refusedHere(err error) *Error {
	e := k.failed(KindBody, err)
	if errors.Is(err, errNotAHeader) {
		e.Kind, e.Status, e.Code, e.Text = KindStatus, http.StatusUnauthorized, "unauthorized", err.Error()
	}
	return e
}

// refusal reads a status failure: its Retry-After and, bounded, its body. A
// body cut short keeps what came.
func (k *call) refusal() *Error {
	e := k.failed(KindStatus, nil)
	e.RetryAfter = retryAfter(k.resp.Header.Get("Retry-After"))
	if e.Status < 200 { // 101: what follows is no body
		return e
	}
	// Read past the limit by the length of an echo of the bearer, and drop as
	// much from the end of a text that was cut: half an echo is not found.
	echo := len(appendString(nil, k.bearer.Reveal()))
	raw, _ := io.ReadAll(io.LimitReader(k.resp.Body, int64(maxErrorText+echo)))
	e.Code = codeOf(raw)
	text := redact(strings.ToValidUTF8(string(raw), "\uFFFD"), k.bearer)
	if len(raw) == maxErrorText+echo {
		text = cutBytes(text, max(len(text)-echo, 0))
	}
	e.Text = cutBytes(text, maxErrorText)
	return e
}

// redact removes the bearer from a cell's words, also as JSON would write it.
func redact(text string, bearer tenancy.Secret) string {
	if bearer.IsZero() {
		return text
	}
	secret := bearer.Reveal()
	text = strings.ReplaceAll(text, secret, tenancy.Redacted)
	if quoted := string(appendString(nil, secret)); quoted != `"`+secret+`"` {
		text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], tenancy.Redacted)
	}
	return text
}

// retryAfter reads the integer seconds form; anything else is absent (§2.2).
func retryAfter(header string) time.Duration {
	seconds, err := strconv.ParseUint(strings.TrimSpace(header), 10, 31)
	if err != nil {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

// codeOf finds the machine-readable word of the three envelopes: code (proxy
// and raft broker) or, in KV's, error.
func codeOf(body []byte) string {
	var envelope struct{ Code, Error json.RawMessage }
	if json.Unmarshal(body, &envelope) != nil {
		return ""
	}
	for _, raw := range [...]json.RawMessage{envelope.Code, envelope.Error} {
		var word string
		if json.Unmarshal(raw, &word) == nil && isCode(word) {
			return word
		}
	}
	return ""
}

func isCode(s string) bool {
	if s == "" || len(s) > maxCode {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// maxTrusted is how much is taken for an answer by what it says of its length;
// beyond it memory grows with what has arrived.
const maxTrusted = 1 << 20

// readAll appends the whole answer to dst, up to limit bytes of it.
func (k *call) readAll(dst []byte, limit int) ([]byte, error) {
	if k.resp.ContentLength > int64(limit) {
		return dst, k.failed(KindBody, errTooLarge)
	}
	start := len(dst)
	if declared := k.resp.ContentLength; declared > 0 { // and a byte that shows the end
		dst = slices.Grow(dst, int(min(declared+1, maxTrusted)))
	}
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := k.resp.Body.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if len(dst)-start > limit {
			return dst, k.failed(KindBody, errTooLarge)
		}
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, k.failed(KindTransport, err)
		}
	}
}

// ask makes a whole call: it sends body and decodes an answer of at most limit
// bytes. A decoder that keeps slices of the answer says so: then the answer's
// memory is its own.
func (c *Client) ask(ctx context.Context, t target, claim tenancy.Claim, body []byte, limit int, keeps bool, decode func([]byte) error) error {
	var src *source
	if body != nil {
		src = newSource(body)
	}
	return c.askSource(ctx, t, claim, src, limit, keeps, decode)
}

func (c *Client) askSource(ctx context.Context, t target, claim tenancy.Claim, src *source, limit int, keeps bool, decode func([]byte) error) error {
	k, err := c.start(ctx, t, claim, src, 0)
	if err != nil {
		return err
	}
	defer k.end()
	buf := &buffer{}
	if !keeps {
		buf = c.getBuffer()
		defer c.putBuffer(buf)
	}
	if buf.b, err = k.readAll(buf.b, limit); err != nil {
		return err
	}
	if err := decode(buf.b); err != nil {
		return k.undecoded(err)
	}
	return nil
}

// undecoded makes a decoder's complaint a body failure; a verdict the decoder
// found (KindPrecondition) only learns where it came from.
func (k *call) undecoded(err error) error {
	if e, ok := AsError(err); ok {
		e.Status, e.Route, e.Reason = k.status(), k.target.name, redact(e.Reason, k.bearer)
		return e
	}
	return k.failed(KindBody, err)
}
