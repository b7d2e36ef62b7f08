package proxyclient

import (
	"context"
	"errors"
	"strconv"

	"github.com/queen-mq/queen-edge/tenancy"
)

// KVNamespace is the only namespace a gateway writes (§4.8).
const KVNamespace = "queen-kafka"

// maxKVAnswer is the 4 MiB of read values a call may give (§4.5) and the keys,
// escapes and envelopes around them.
const maxKVAnswer = 16 << 20

// KVKind is one of the four operations a gateway uses (§4.2).
type KVKind uint8

// The operations.
const (
	KVPut KVKind = iota
	KVDelete
	KVGetMany
	KVGetPrefix
)

// Expect is a write's condition (§4.3); the zero value is none.
type Expect struct {
	given   bool
	version int64
}

// ExpectAbsent lets the write happen only where there is no live row.
func ExpectAbsent() Expect { return Expect{given: true} }

// ExpectVersion lets the write happen only on exactly that version; 0 is
// ExpectAbsent.
func ExpectVersion(version int64) Expect { return Expect{given: true, version: version} }

// KVOp is one operation; fields of other operations are not sent.
type KVOp struct {
	Op         KVKind
	NS         string   // "" is KVNamespace
	Key        string   // put, delete
	Value      []byte   // put: JSON; nil is null
	TTLSeconds int64    // put: 0 is forever
	Expect     Expect   // put, delete
	Required   bool     // put, delete: losing undoes the whole call (KindPrecondition)
	Keys       []string // getMany
	Prefix     string   // getPrefix
	After      string   // getPrefix: exclusive; "" is from the start
	Limit      int      // getPrefix: 0 is the cell's default of 100; at most 1000
	KeysOnly   bool     // getPrefix
}

// KVRow is a row that was read.
type KVRow struct {
	Key     string
	Value   []byte // JSON; nil where the cell sent none (KeysOnly)
	Version int64
}

// KVResult is an operation's answer.
type KVResult struct {
	Applied   bool     // put, delete
	Reason    string   // put, delete that lost: exists, version, absent
	Value     []byte   // put, delete: own, old or the winner's; JSON
	Version   int64    // put, delete
	Rows      []KVRow  // getMany, getPrefix, in key order
	Missing   []string // getMany: keys proved absent
	Unread    []string // getMany: keys neither read nor proved absent; never absent, ask again
	Truncated bool     // getMany, getPrefix
	NextAfter string   // getPrefix: give it back as After; "" is the end
}

var (
	errKVIndex = errors.New("the KV answer's indexes are not 0..n-1, each once")
	errKVShape = errors.New("a KV result is not the answer to its operation")
)

// KV makes one call of up to 256 operations (§4.7), which happen as one
// transaction; no operations is no call. Results are aligned with ops. A lost
// required condition is a KindPrecondition error with the verdict.
func (c *Client) KV(ctx context.Context, s tenancy.Scope, ops []KVOp) ([]KVResult, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	buf := c.getBuffer()
	defer c.putBuffer(buf)
	buf.b = appendKV(buf.b, ops)
	var results []KVResult
	err := c.ask(ctx, postTarget(RouteKV, "/api/v1/kv"), claimOf(s), buf.b, maxKVAnswer, true, func(body []byte) (err error) {
		results, err = decodeKV(body, ops)
		return err
	})
	return results, err
}

func appendKV(b []byte, ops []KVOp) []byte {
	b = append(b, `{"operations":[`...)
	for i := range ops {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendKVOp(b, &ops[i])
	}
	return append(b, "]}"...)
}

func appendKVOp(b []byte, op *KVOp) []byte {
	ns := op.NS
	if ns == "" {
		ns = KVNamespace
	}
	b = append(b, `{"op":"`...)
	b = append(b, op.Op.String()...)
	b = appendString(append(b, `","ns":`...), ns)
	switch op.Op {
	case KVPut:
		b = appendString(append(b, `,"key":`...), op.Key)
		b = appendPut(b, op)
	case KVDelete:
		b = appendString(append(b, `,"key":`...), op.Key)
	case KVGetMany:
		b = appendKeys(b, op.Keys)
	case KVGetPrefix:
		b = appendScan(b, op)
	}
	if op.Op == KVPut || op.Op == KVDelete {
		b = appendCondition(b, op)
	}
	return append(b, '}')
}

// String is the operation's word on the wire.
func (k KVKind) String() string {
	switch k {
	case KVPut:
		return "put"
	case KVDelete:
		return "delete"
	case KVGetMany:
		return "getMany"
	case KVGetPrefix:
		return "getPrefix"
	}
	return "unknown"
}

func appendPut(b []byte, op *KVOp) []byte {
	b = append(b, `,"value":`...)
	if op.Value == nil {
		b = append(b, "null"...)
	}
	b = append(b, op.Value...)
	if op.TTLSeconds > 0 {
		return strconv.AppendInt(append(b, `,"ttlSeconds":`...), op.TTLSeconds, 10)
	}
	return append(b, `,"forever":true`...)
}

func appendCondition(b []byte, op *KVOp) []byte {
	if op.Expect.given {
		b = strconv.AppendInt(append(b, `,"expect":`...), op.Expect.version, 10)
	}
	if op.Required {
		b = append(b, `,"required":true`...)
	}
	return b
}

func appendKeys(b []byte, keys []string) []byte {
	b = append(b, `,"keys":[`...)
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, key)
	}
	return append(b, ']')
}

func appendScan(b []byte, op *KVOp) []byte {
	b = appendString(append(b, `,"prefix":`...), op.Prefix)
	if op.Limit > 0 {
		b = strconv.AppendInt(append(b, `,"limit":`...), int64(op.Limit), 10)
	}
	if op.After != "" {
		b = appendString(append(b, `,"after":`...), op.After)
	}
	if op.KeysOnly {
		b = append(b, `,"keysOnly":true`...)
	}
	return b
}
