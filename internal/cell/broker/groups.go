package broker

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Committed offsets as a gateway keeps them (cell-http §4.8).
const (
	kafkaNS      = "queen-kafka"
	groupOffsets = "qk:group:"
)

// Groups lists what consumer groups have committed, Kafka's and native ones, by
// group and queue (cell-http §3.10). Queues that do not exist, expired rows and values without a
// numeric offset contribute nothing.
func (b *Broker) Groups(t Tenant) (list []GroupRow, err error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.leave()
	now := b.now()
	rows := make(map[[2]string]*GroupRow)
	v := kvView{store: b.store, tenant: t}
	defer v.close(&err)
	prefix := appendKVKey(nil, t, kafkaNS, groupOffsets)
	err = v.scan(prefix, prefix, func(key []byte, row kvRow) bool {
		if row.live(now) {
			b.countOffset(t, rows, string(key[len(prefix):]), row.value)
		}
		return true
	})
	for _, row := range rows {
		list = append(list, *row)
	}
	list = append(list, b.nativeGroups(t)...)
	slices.SortStableFunc(list, compareGroups)
	return list, err
}

// countOffset adds one committed offset; key is <group>:<queue>:<partition>,
// escaped.
func (b *Broker) countOffset(t Tenant, rows map[[2]string]*GroupRow, key string, value []byte) {
	parts := strings.Split(key, ":")
	if len(parts) != 3 {
		return
	}
	group, gok := unescape(parts[0])
	queue, qok := unescape(parts[1])
	offset, oerr := committedOffset(value)
	q := b.catalog.find(t, queue)
	if q == nil || oerr != nil || !gok || !qok {
		return
	}
	row := rows[[2]string{group, queue}]
	if row == nil {
		row = &GroupRow{Group: group, Queue: queue}
		rows[[2]string{group, queue}] = row
	}
	row.Partitions++
	p := q.partition(parts[2])
	if p == nil {
		return
	}
	if _, next := p.bounds(); next > offset {
		row.TotalLag += next - max(offset, 0)
		row.PartitionsWithLag++
	}
}

var errNoOffset = errors.New("the value has no numeric offset")

func committedOffset(value []byte) (int64, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil {
		return 0, err
	}
	text := string(members["offset"])
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return 0, errNoOffset
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return int64(max(min(f, math.MaxInt64/2), 0)), err
}

// unescape undoes percent-encoding. A broken escape makes a name nobody has.
func unescape(s string) (string, bool) {
	var out []byte
	for {
		before, rest, found := strings.Cut(s, "%")
		out = append(out, before...)
		if !found {
			return string(out), true
		}
		if len(rest) < 2 {
			return "", false
		}
		c, err := hex.DecodeString(rest[:2])
		if err != nil {
			return "", false
		}
		out, s = append(out, c...), rest[2:]
	}
}
