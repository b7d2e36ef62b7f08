package broker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	defaultPrefixLimit = 100
	maxPrefixLimit     = 1000
	maxNSBytes         = 64
)

// kvStep is a checked operation. It shares nothing that its caller may change.
type kvStep struct {
	index    int // position in the call
	kind     KVKind
	ns       string
	key      string // or the prefix
	at       []byte // the index key of key
	value    []byte // compact JSON
	ttl      int64  // s, 0 for ever
	expect   OptInt
	required bool

	by       int64 // incr
	min, max OptInt

	keys     []string // getMany: in byte order, each once
	after    string   // getPrefix
	limit    int
	keysOnly bool
}

func (s *kvStep) writes() bool {
	return s.kind == KVPut || s.kind == KVDelete || s.kind == KVIncr
}

func (s *kvStep) many() bool { return s.kind == KVGetMany || s.kind == KVGetPrefix }

// kvCall is one call on its way.
type kvCall struct {
	tenant Tenant
	// steps is in the order they run in (cell-http §4.5): single-key ones by
	// namespace and key, then the others as they came.
	steps   []kvStep
	writes  int
	deletes int
	bytes   int64 // about what the log takes

	// Filled in by run.
	results []KVResult
	staged  []kvWrite
	delta   KVUsage
	now     int64
	version int64 // the next one to be given
	read    int64 // value bytes of the results of reads
}

// kvLimits are those that differ between a call and a transaction.
type kvLimits struct {
	ops, keys int
	inTxn     bool
}

func refuse(reason, format string, args ...any) *KVError {
	kind := KVBadRequest
	if reason == ReasonValueTooLarge || reason == ReasonKeyTooLarge {
		kind = KVPayloadTooLarge
	}
	return &KVError{Kind: kind, Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// newKVCall checks the operations of a call (cell-http §4.2, §4.7).
func newKVCall(t Tenant, ops []KVOp, limits kvLimits) (*kvCall, error) {
	if len(ops) > limits.ops {
		return nil, refuse(ReasonTooManyOps, "%d operations, at most %d", len(ops), limits.ops)
	}
	c := &kvCall{tenant: t, steps: make([]kvStep, len(ops))}
	keys := 0
	var texts bytes.Buffer // all values, compact
	for i := range ops {
		if limits.inTxn && ops[i].Kind == KVGetPrefix {
			return nil, refuse(ReasonUnknownOp, "operation %d: a transaction takes no getPrefix", i)
		}
		s := &c.steps[i]
		s.index = i
		if err := s.check(&ops[i], &texts); err != nil {
			err.Detail = fmt.Sprintf("operation %d: %s", i, err.Detail)
			return nil, err
		}
		s.at = appendKVKey(make([]byte, 0, kvKeyOverhead+len(s.ns)+len(s.key)), t, s.ns, s.key)
		if keys += s.keyCount(len(ops[i].Keys)); keys > limits.keys {
			return nil, refuse(ReasonTooManyKeys, "more than %d keys", limits.keys)
		}
		c.count(s)
	}
	slices.SortStableFunc(c.steps, compareSteps)
	return c, c.checkOneWritePerKey()
}

func compareSteps(a, b kvStep) int {
	switch {
	case a.many() && b.many():
		return a.index - b.index
	case a.many():
		return 1
	case b.many():
		return -1
	default:
		return bytes.Compare(a.at, b.at)
	}
}

func (s *kvStep) keyCount(asked int) int {
	switch s.kind {
	case KVGetMany:
		return asked
	case KVGetPrefix:
		return s.limit
	default:
		return 1
	}
}

func (c *kvCall) count(s *kvStep) {
	if s.writes() {
		c.writes++
		c.bytes += int64(len(s.at)+len(s.value)) + 32
	}
	if s.kind == KVDelete {
		c.deletes++
	}
}

// checkOneWritePerKey looks at neighbours: steps are sorted.
func (c *kvCall) checkOneWritePerKey() error {
	var last *kvStep
	for i := range c.steps {
		s := &c.steps[i]
		if !s.writes() {
			continue
		}
		if last != nil && bytes.Equal(last.at, s.at) {
			return refuse(ReasonDuplicateKey, "operations %d and %d write the same key", last.index, s.index)
		}
		last = s
	}
	return nil
}

// check takes over one operation.
func (s *kvStep) check(o *KVOp, texts *bytes.Buffer) *KVError {
	s.kind, s.ns, s.key = o.Kind, o.NS, o.Key
	if !validNS(o.NS) {
		return refuse(ReasonBadNamespace, "the namespace must match [a-z0-9][a-z0-9._-]{0,63}")
	}
	switch o.Kind {
	case KVGet:
		return checkKey(o.Key)
	case KVGetMany:
		return s.checkMany(o)
	case KVGetPrefix:
		return s.checkPrefix(o)
	case KVPut, KVPutIfAbsent:
		return s.checkPut(o, texts)
	case KVDelete, KVCheck:
		return s.checkBare(o)
	case KVIncr:
		return s.checkIncr(o)
	default:
		return refuse(ReasonUnknownOp, "%.40q is no operation", string(o.Kind))
	}
}

func validNS(ns string) bool {
	if ns == "" || len(ns) > maxNSBytes {
		return false
	}
	for i := range len(ns) {
		c := ns[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

func checkKey(key string) *KVError {
	switch {
	case key == "":
		return refuse(ReasonBadKey, "the key is empty")
	case len(key) > MaxKVKeyBytes:
		return refuse(ReasonKeyTooLarge, "a key of %d bytes, at most %d", len(key), MaxKVKeyBytes)
	case strings.IndexByte(key, 0) >= 0, !utf8.ValidString(key):
		return refuse(ReasonBadKey, "the key must be UTF-8 without a zero byte")
	default:
		return nil
	}
}

func (s *kvStep) checkMany(o *KVOp) *KVError {
	for _, key := range o.Keys {
		if err := checkKey(key); err != nil {
			return err
		}
	}
	s.key = ""
	s.keys = slices.Clone(o.Keys)
	slices.Sort(s.keys)
	s.keys = slices.Compact(s.keys)
	return nil
}

func (s *kvStep) checkPrefix(o *KVOp) *KVError {
	if o.Prefix == "" {
		return refuse(ReasonPrefixRequired, "the prefix is empty")
	}
	if err := checkKey(o.Prefix); err != nil {
		return err
	}
	if o.After != "" {
		if err := checkKey(o.After); err != nil {
			return err
		}
	}
	s.key, s.after, s.keysOnly, s.limit = o.Prefix, o.After, o.KeysOnly, defaultPrefixLimit
	if o.Limit.Set {
		s.limit = int(min(max(o.Limit.N, 1), maxPrefixLimit))
	}
	return nil
}

func (s *kvStep) checkPut(o *KVOp, texts *bytes.Buffer) *KVError {
	if err := checkKey(o.Key); err != nil {
		return err
	}
	if err := s.checkCondition(o); err != nil {
		return err
	}
	if o.Kind == KVPutIfAbsent {
		if o.Expect.Set && o.Expect.N != 0 {
			return refuse(ReasonBadExpect, "putIfAbsent expects 0 and nothing else")
		}
		s.kind, s.expect = KVPut, Int(0)
	}
	if err := s.checkExpiry(o); err != nil {
		return err
	}
	if o.Value == nil {
		return refuse(ReasonBadBody, "there is no value")
	}
	from := texts.Len()
	if err := json.Compact(texts, o.Value); err != nil {
		return refuse(ReasonBadBody, "the value is no JSON: %v", err)
	}
	s.value = texts.Bytes()[from:texts.Len():texts.Len()]
	if len(s.value) > MaxKVValueBytes {
		return refuse(ReasonValueTooLarge, "a value of %d bytes, at most %d", len(s.value), MaxKVValueBytes)
	}
	return nil
}

func (s *kvStep) checkBare(o *KVOp) *KVError {
	if err := checkKey(o.Key); err != nil {
		return err
	}
	if o.TTLSeconds.Set || o.Forever {
		return refuse(ReasonBadTTL, "a %s has no expiry", o.Kind)
	}
	if o.Kind == KVCheck && !o.Expect.Set {
		return refuse(ReasonBadExpect, "a check needs an expect")
	}
	return s.checkCondition(o)
}

func (s *kvStep) checkIncr(o *KVOp) *KVError {
	if err := checkKey(o.Key); err != nil {
		return err
	}
	if o.Expect.Set {
		return refuse(ReasonBadExpect, "an incr has no expect")
	}
	s.required, s.by, s.min, s.max = o.Required, 1, o.Min, o.Max
	if o.By.Set {
		s.by = o.By.N
	}
	return s.checkExpiry(o)
}

func (s *kvStep) checkCondition(o *KVOp) *KVError {
	if o.Expect.Set && o.Expect.N < 0 {
		return refuse(ReasonBadExpect, "expect is %d and must not be negative", o.Expect.N)
	}
	s.expect, s.required = o.Expect, o.Required
	return nil
}

func (s *kvStep) checkExpiry(o *KVOp) *KVError {
	switch {
	case o.TTLSeconds.Set == o.Forever:
		return refuse(ReasonExpiry, "exactly one of ttlSeconds and forever: true must be given")
	case o.TTLSeconds.Set && o.TTLSeconds.N <= 0:
		return refuse(ReasonBadTTL, "ttlSeconds is %d and must be positive", o.TTLSeconds.N)
	}
	s.ttl = o.TTLSeconds.N
	if o.Forever {
		s.ttl = 0
	}
	return nil
}
