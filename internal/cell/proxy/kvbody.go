package proxy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// kvBody decodes a KV batch (cell-http §4.2) and judges, from the same
// decoding, what kind of batch it is (§5.2): were the two read apart, a body
// could be one thing to the gate and another to the broker. It is reused:
// nothing may keep ops. Values alias the body.
type kvBody struct {
	dec  jx.Decoder
	ops  []broker.KVOp // at most one more than a call may have
	keys int           // kept in ops

	count   int         // operations in the body, kept or not
	private bool        // every one is a gateway's own, see reserved
	space   int         // whose: index of keyspaces
	grows   bool        // any of them may add something
	broken  bool        // no batch at all: forwarded as it is
	wrong   *kvRefusal  // first thing of the wrong shape
	op      broker.KVOp // being read
	seen    opMembers
}

// keyspace is a part of the key space that a gateway keeps its own state in
// and that is open without the kv feature.
type keyspace struct{ ns, prefix string }

// keyspaces lists them (cell-http §5.2).
func keyspaces() [2]keyspace {
	return [...]keyspace{{"queen-kafka", "qk:"}, {"queen-s3", "s3:"}}
}

// opMembers notes what an operation had, for what its value does not tell.
type opMembers struct {
	ns, op  bool    // they were strings
	named   bool    // it names at least one key
	outside [2]bool // one of them does not belong to that key space
}

// kvRefusal is the KV envelope (cell-http §4.7), which differs from all others.
type kvRefusal struct {
	status     int
	err        string
	reason     string
	detail     string
	retryAfter int
}

func kvBad(reason, detail string) *kvRefusal {
	return &kvRefusal{status: 400, err: string(broker.KVBadRequest), reason: reason, detail: detail}
}

// reset forgets the last body.
func (b *kvBody) reset() {
	clear(b.ops)
	b.dec.ResetBytes(nil)
	*b = kvBody{dec: b.dec, ops: b.ops[:0]}
}

// decode reads a body: an array of operations, or an object that has one.
func (b *kvBody) decode(body []byte) {
	b.reset()
	b.private = true
	b.dec.ResetBytes(body)
	var err error
	switch {
	case !utf8.Valid(body):
		b.broken = true
	case b.dec.Next() == jx.Array:
		err = b.list()
	case b.dec.Next() == jx.Object:
		err = b.envelope()
	default:
		b.broken = true
	}
	b.broken = b.broken || err != nil || trailing(&b.dec)
	if b.broken {
		b.wrong = kvBad(broker.ReasonBadBody, "the body must be a JSON array of operations, or an object with one")
	}
	// A broken body is nobody's, and adds nothing: the broker will refuse it.
	b.private = b.private && !b.broken && b.count > 0
	b.grows = b.grows && !b.broken
}

// envelope reads {"operations":[…]}.
func (b *kvBody) envelope() error {
	members, err := b.dec.ObjIter()
	if err != nil {
		return err
	}
	found := false
	for members.Next() {
		if string(members.Key()) != "operations" {
			if err := b.dec.Skip(); err != nil {
				return err
			}
			continue
		}
		if found || b.dec.Next() != jx.Array {
			b.broken = true // which of two counts is nobody's to guess
			return b.dec.Skip()
		}
		found = true
		if err := b.list(); err != nil {
			return err
		}
	}
	b.broken = b.broken || !found
	return members.Err()
}

// list reads the operations.
func (b *kvBody) list() error {
	elements, err := b.dec.ArrIter()
	if err != nil {
		return err
	}
	for elements.Next() {
		if b.dec.Next() != jx.Object {
			b.private, b.grows = false, true
			b.complain(broker.ReasonBadBody, "an operation must be an object")
			err = b.dec.Skip()
		} else {
			err = b.operation()
		}
		if err != nil {
			return err
		}
		b.count++
	}
	return elements.Err()
}

// operation reads one.
func (b *kvBody) operation() error {
	b.op = broker.KVOp{}
	b.seen = opMembers{}
	members, err := b.dec.ObjIter()
	if err != nil {
		return err
	}
	for members.Next() {
		if err := b.member(string(members.Key())); err != nil {
			return err
		}
	}
	if err := members.Err(); err != nil {
		return err
	}
	b.judge()
	// One more than the limit is enough for the broker to see that there are
	// too many.
	if len(b.ops) <= broker.LargestTxnKVOps {
		b.ops = append(b.ops, b.op)
	}
	return nil
}

// member reads one member of an operation.
func (b *kvBody) member(name string) error {
	switch name {
	case "op":
		text, err := b.text(name, &b.seen.op)
		b.op.Kind = broker.KVKind(text)
		return err
	case "ns":
		text, err := b.text(name, &b.seen.ns)
		b.op.NS = text
		return err
	case "key":
		return b.key(&b.op.Key, name)
	case "prefix":
		return b.key(&b.op.Prefix, name)
	case "keys":
		return b.keyList()
	case "after":
		return b.after()
	case "value":
		raw, err := b.dec.Raw()
		b.op.Value = raw
		return err
	case "limit":
		return b.integer(name, &b.op.Limit, broker.ReasonBadBody)
	case "by", "delta":
		return b.integer(name, &b.op.By, broker.ReasonBadBody)
	case "min":
		return b.integer(name, &b.op.Min, broker.ReasonBadBody)
	case "max":
		return b.integer(name, &b.op.Max, broker.ReasonBadBody)
	case "ttlSeconds":
		return b.integer(name, &b.op.TTLSeconds, broker.ReasonBadTTL)
	case "expect":
		return b.integer(name, &b.op.Expect, broker.ReasonBadExpect)
	case "keysOnly":
		return b.flag(name, &b.op.KeysOnly)
	case "forever":
		return b.flag(name, &b.op.Forever)
	case "required":
		return b.flag(name, &b.op.Required)
	case "tenant", "tenantId", "_tenant":
		b.complain(broker.ReasonTenantNotInput, "the tenant comes with the credential, not with an operation")
	}
	return b.dec.Skip()
}

// text reads a string member; another value is skipped and complained of.
func (b *kvBody) text(name string, isText *bool) (string, error) {
	s, ok, err := stringValue(&b.dec)
	*isText = ok
	if err == nil && !ok {
		b.complain(broker.ReasonBadBody, name+" must be a string")
	}
	return s, err
}

// key reads a member that names one key.
func (b *kvBody) key(into *string, name string) error {
	var isText bool
	text, err := b.text(name, &isText)
	b.note(text, isText)
	*into = text
	return err
}

// note judges a key where it is read: also those that a later member of the
// same name replaces.
func (b *kvBody) note(key string, isText bool) {
	b.seen.named = true
	for i, s := range keyspaces() {
		if !isText || !strings.HasPrefix(key, s.prefix) {
			b.seen.outside[i] = true
		}
	}
}

// keyList reads the keys of a getMany. Those beyond what a call may have are
// judged and not kept.
func (b *kvBody) keyList() error {
	b.op.Keys = nil
	if b.dec.Next() != jx.Array {
		b.note("", false)
		b.complain(broker.ReasonBadBody, "keys must be an array of strings")
		return b.dec.Skip()
	}
	elements, err := b.dec.ArrIter()
	if err != nil {
		return err
	}
	for elements.Next() {
		var isText bool
		key, err := b.text("a key", &isText)
		if err != nil {
			return err
		}
		b.note(key, isText)
		if b.keys <= broker.MaxKVKeys {
			b.op.Keys = append(b.op.Keys, key)
			b.keys++
		}
	}
	return elements.Err()
}

// after reads where a page begins; null is the beginning.
func (b *kvBody) after() error {
	if b.dec.Next() == jx.Null {
		b.op.After = ""
		return b.dec.Null()
	}
	var isText bool
	text, err := b.text("after", &isText)
	b.op.After = text
	return err
}

// integer reads an optional integer member; null is an absent one.
func (b *kvBody) integer(name string, into *broker.OptInt, reason string) error {
	// A condition that is null is refused: whoever computed it meant one.
	if b.dec.Next() == jx.Null && reason != broker.ReasonBadExpect {
		*into = broker.OptInt{}
		return b.dec.Null()
	}
	n, ok, err := integer(&b.dec)
	if err == nil && !ok {
		b.complain(reason, name+" must be an integer")
	}
	*into = broker.Int(n)
	return err
}

// flag reads a boolean member; null is false.
func (b *kvBody) flag(name string, into *bool) error {
	if b.dec.Next() == jx.Null {
		*into = false
		return b.dec.Null()
	}
	flag, ok, err := boolValue(&b.dec)
	if err == nil && !ok {
		b.complain(broker.ReasonBadBody, name+" must be a boolean")
	}
	*into = flag
	return err
}

// judge holds the operation against the rules of cell-http §5.2.
func (b *kvBody) judge() {
	switch b.op.Kind {
	case broker.KVGet, broker.KVGetPrefix, broker.KVDelete, "cancel":
	default:
		b.grows = true
	}
	if !b.private {
		return
	}
	switch b.op.Kind {
	case broker.KVPut, broker.KVDelete, broker.KVGetMany, broker.KVGetPrefix:
	default:
		b.private = false
		return
	}
	b.private = b.seen.op && b.seen.ns && b.seen.named && b.reserved()
}

// reserved reports whether the operation stays in the batch's own part of the
// key space; the first operation says which.
func (b *kvBody) reserved() bool {
	for i, s := range keyspaces() {
		if s.ns == b.op.NS && (b.count == 0 || b.space == i) {
			b.space = i
			return !b.seen.outside[i]
		}
	}
	return false
}

// complain remembers the first thing that is wrong.
func (b *kvBody) complain(reason, detail string) {
	if b.wrong == nil {
		b.wrong = kvBad(reason, fmt.Sprintf("operation %d: %s", b.count, detail))
	}
}
