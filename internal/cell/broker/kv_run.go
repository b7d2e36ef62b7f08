package broker

import (
	"math"
	"strconv"
	"time"
)

// latestExpiry bounds what a TTL can come to: the last microsecond of the year
// 9999, which RFC 3339 can still say.
const latestExpiry = 253402300799999999

// run runs the steps against a view at a time. Nothing is written: staged
// holds what is to be, with versions from version on. A lost required condition
// is a *KVPrecondition.
func (c *kvCall) run(v *kvView, now, version int64) error {
	c.now, c.version = now, version
	c.results = make([]KVResult, len(c.steps))
	if c.writes > 0 && c.writes < len(c.steps) {
		v.over[0] = make(map[string]kvRow, c.writes) // later steps see it
	}
	for i := range c.steps {
		s := &c.steps[i]
		r := &c.results[s.index]
		r.Kind = s.kind
		if err := c.runStep(v, s, r); err != nil {
			return err
		}
		if s.required && !r.Applied && !s.many() && s.kind != KVGet {
			return &KVPrecondition{FailedIndex: s.index, Reason: r.Reason, Version: r.Version, Value: r.Value}
		}
	}
	return nil
}

func (c *kvCall) runStep(v *kvView, s *kvStep, r *KVResult) error {
	switch s.kind {
	case KVGetMany:
		return c.getMany(v, s, r)
	case KVGetPrefix:
		return c.getPrefix(v, s, r)
	}
	old, err := v.get(s.at)
	if err != nil {
		return err
	}
	r.Key = s.key
	there := old.live(c.now)
	if there {
		r.Value, r.Version = old.value, old.version
	}
	switch s.kind {
	case KVGet:
		r.Found = there
		if there {
			r.ExpiresAt, r.UpdatedAt = instant(old.expires), instant(old.updated)
			c.read += int64(len(old.value))
		}
		return nil
	case KVIncr:
		c.incr(v, s, r, &old, there)
		return nil
	}
	if r.Reason = s.judge(&old, there); r.Reason != "" {
		return nil
	}
	r.Applied = true
	switch s.kind {
	case KVPut:
		r.Value = s.value
		r.Version = c.stage(v, s, &old, kvRow{expires: c.expiry(s.ttl), value: s.value})
	case KVDelete:
		if there {
			c.stage(v, s, &old, kvRow{})
		}
	}
	return nil
}

// judge holds a condition against the row that is there (cell-http §4.3).
func (s *kvStep) judge(old *kvRow, there bool) KVReason {
	switch {
	case !s.expect.Set:
		if s.kind == KVDelete && !there {
			return KVAbsent
		}
		return ""
	case s.expect.N == 0 && there:
		return KVExists
	case s.expect.N == 0:
		return ""
	case !there:
		return KVAbsent
	case old.version != s.expect.N:
		return KVVersion
	default:
		return ""
	}
}

// incr adds to an integer; a row that is not there counts as 0. Nothing
// saturates: a sum out of bounds is not applied.
func (c *kvCall) incr(v *kvView, s *kvStep, r *KVResult, old *kvRow, there bool) {
	n, expires := int64(0), c.expiry(s.ttl)
	if there {
		var err error
		if n, err = strconv.ParseInt(string(old.value), 10, 64); err != nil {
			r.Reason = KVType
			return
		}
		expires = old.expires
	}
	if s.by > 0 && n > math.MaxInt64-s.by || s.by < 0 && n < math.MinInt64-s.by {
		r.Reason = KVLimit
		return
	}
	n += s.by
	if s.max.Set && n > s.max.N || s.min.Set && n < s.min.N {
		r.Reason = KVLimit
		return
	}
	r.Applied, r.Value = true, strconv.AppendInt(nil, n, 10)
	r.Version = c.stage(v, s, old, kvRow{expires: expires, value: r.Value})
}

// expiry is when a row written now ends.
func (c *kvCall) expiry(ttl int64) int64 {
	switch {
	case ttl == 0:
		return 0
	case ttl > (latestExpiry-c.now)/1e6:
		return latestExpiry
	default:
		return c.now + ttl*1e6
	}
}

// stage notes a write and gives its version, 0 for a row that is removed.
func (c *kvCall) stage(v *kvView, s *kvStep, old *kvRow, row kvRow) int64 {
	if row.value != nil {
		row.version, row.updated = c.version, c.now
		c.version++
	}
	c.staged = append(c.staged, kvWrite{key: s.at, row: row, oldExpires: old.expires})
	c.delta.add(old, &row, s.at)
	if v.over[0] != nil {
		v.over[0][string(s.at)] = row
	}
	return row.version
}

// add books that a row takes the place of another.
func (u *KVUsage) add(old, row *kvRow, key []byte) {
	rows, bytes := row.charge(key)
	oldRows, oldBytes := old.charge(key)
	u.Rows += rows - oldRows
	u.Bytes += bytes - oldBytes
}

// getMany gives the rows of a list of keys.
func (c *kvCall) getMany(v *kvView, s *kvStep, r *KVResult) error {
	if err := v.open(); err != nil {
		return err
	}
	var room [kvKeyOverhead + maxNSBytes + MaxKVKeyBytes]byte
	for _, key := range s.keys {
		row, err := v.get(appendKVKey(room[:0], c.tenant, s.ns, key))
		if err != nil {
			return err
		}
		switch {
		case !row.live(c.now):
			r.Missing = append(r.Missing, key)
		case r.Truncated || !c.affords(&row):
			r.Truncated = true // in neither: the caller must not take it for absent
		default:
			r.Rows = append(r.Rows, showRow(key, &row, false))
		}
	}
	return nil
}

// getPrefix gives a page of the rows with a prefix.
func (c *kvCall) getPrefix(v *kvView, s *kvStep, r *KVResult) error {
	from := s.at
	if s.after != "" {
		behind := append(appendKVKey(nil, c.tenant, s.ns, s.after), 0)
		if string(behind) > string(from) {
			from = behind
		}
	}
	err := v.scan(s.at, from, func(key []byte, row kvRow) bool {
		if !row.live(c.now) {
			return true
		}
		if len(r.Rows) == s.limit || !s.keysOnly && !c.affords(&row) {
			r.Truncated = true
			return false
		}
		r.Rows = append(r.Rows, showRow(string(kvName(key, len(s.ns))), &row, s.keysOnly))
		return true
	})
	if r.Truncated {
		r.NextAfter = s.after
		if n := len(r.Rows); n > 0 {
			r.NextAfter = r.Rows[n-1].Key
		}
	}
	return err
}

// affords takes a row's value out of the read budget if that has room for it.
func (c *kvCall) affords(row *kvRow) bool {
	n := int64(len(row.value))
	if c.read+n > KVReadBudget {
		return false
	}
	c.read += n
	return true
}

func showRow(key string, row *kvRow, keysOnly bool) KVRow {
	shown := KVRow{Key: key, Value: row.value, Version: row.version, ExpiresAt: instant(row.expires), UpdatedAt: instant(row.updated)}
	if keysOnly {
		shown.Value = nil
	}
	return shown
}

func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
