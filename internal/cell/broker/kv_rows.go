package broker

import (
	"encoding/binary"
	"slices"
)

// kvRow is a row as it is stored. The zero row is none at all.
type kvRow struct {
	version int64
	expires int64 // µs since 1970, 0 for never
	updated int64 // µs since 1970
	value   []byte
}

// live says whether there is a row: an expired one is none from the instant it
// expires on (cell-http §4.1).
func (r *kvRow) live(now int64) bool {
	return r.version > 0 && (r.expires == 0 || r.expires > now)
}

// charge is what KVStats counts for a row under an index key.
func (r *kvRow) charge(key []byte) (rows, bytes int64) {
	if r.version == 0 {
		return 0, 0
	}
	return 1, int64(len(key)-kvKeyOverhead) + int64(len(r.value))
}

func appendKVRow(b []byte, r *kvRow) []byte {
	b = binary.AppendUvarint(b, uint64(r.version))
	b = binary.AppendUvarint(b, uint64(r.expires))
	b = binary.AppendUvarint(b, uint64(r.updated))
	return append(b, r.value...)
}

// decodeKVRow aliases b.
func decodeKVRow(b []byte) (kvRow, error) {
	d := decoder{b: b}
	r := kvRow{version: d.int(), expires: d.int(), updated: d.int()}
	r.value = d.b
	return r, d.err
}

// kvKeyOverhead is what an index key has beside the namespace and the key.
const kvKeyOverhead = 1 + len(Tenant{}) + 1

// appendKVKey is the index key of a row. Neither a namespace nor a key holds a
// zero byte, so rows lie in (tenant, namespace, key) order.
func appendKVKey(b []byte, t Tenant, ns, key string) []byte {
	b = append(b, kvRows)
	b = append(b, t[:]...)
	b = append(b, ns...)
	b = append(b, 0)
	return append(b, key...)
}

// kvName is the key's part of an index key whose namespace has n bytes.
func kvName(indexKey []byte, n int) []byte { return indexKey[kvKeyOverhead+n:] }

func appendExpiryKey(b []byte, expires int64, kvKey []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, expiryRows), uint64(expires))
	return append(b, kvKey...)
}

// after is the first key behind all that begin with prefix.
func after(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// kvWrite is one write of an opKV.
type kvWrite struct {
	key        []byte // in the index
	row        kvRow  // version 0: the row is removed
	oldExpires int64  // of the row it replaces
}

// kvOp is what an opKV says beside its writes.
type kvOp struct {
	now         int64 // µs
	rows, bytes int64 // by how much the tenant's usage changes
	writes      []byte
}

func appendKVOp(dst []byte, t Tenant, o kvOp, writes []kvWrite) []byte {
	return appendOp(dst, opKV, func(b []byte) []byte {
		b = append(b, t[:]...)
		b = binary.AppendUvarint(b, uint64(o.now))
		b = binary.AppendVarint(b, o.rows)
		b = binary.AppendVarint(b, o.bytes)
		for i := range writes {
			w := &writes[i]
			name := w.key[1+len(t):]
			b = binary.AppendUvarint(b, uint64(len(name)))
			b = append(b, name...)
			b = binary.AppendUvarint(b, uint64(w.row.version))
			b = binary.AppendUvarint(b, uint64(w.row.expires))
			b = binary.AppendUvarint(b, uint64(w.oldExpires))
			b = binary.AppendUvarint(b, uint64(len(w.row.value)))
			b = append(b, w.row.value...)
		}
		return b
	})
}

func (o *op) decodeKV(d *decoder) {
	copy(o.tenant[:], d.bytes(uint64(len(o.tenant))))
	o.kv = kvOp{now: d.int(), rows: d.varint(), bytes: d.varint()}
	o.kv.writes, d.b = d.b, nil
}

// eachWrite decodes the writes of an opKV. A write is valid during visit.
func (o *op) eachWrite(visit func(*kvWrite) error) error {
	var room [kvKeyOverhead + 64 + MaxKVKeyBytes]byte
	d := decoder{b: o.kv.writes}
	for len(d.b) > 0 {
		w := kvWrite{key: append(append(room[:0], kvRows), o.tenant[:]...)}
		w.key = append(w.key, d.bytes(d.uint())...)
		w.row = kvRow{version: d.int(), expires: d.int(), updated: o.kv.now}
		w.oldExpires = d.int()
		w.row.value = d.bytes(d.uint())
		if d.err != nil {
			return d.err
		}
		if err := visit(&w); err != nil {
			return err
		}
	}
	return nil
}
