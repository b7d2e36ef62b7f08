package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// check is a line of checks.txt.
type check struct{ name, proves string }

func readChecks(path string) ([]check, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []check
	for line := range strings.Lines(string(text)) {
		name, proves, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if !ok {
			return nil, fmt.Errorf("%s: %q has no tab", path, line)
		}
		out = append(out, check{name, proves})
	}
	return out, nil
}

// row is a line of dataset.tsv. Its fields are in the canonical forms, which
// are the ones that are compared: null, or x and hexadecimal digits.
type row struct {
	check, id string
	fields    fields
	now       bool // the timestamp is the client's to choose
}

// fields is a record as text.
type fields struct {
	key, value, timestamp, headers string
}

type dataset []row

func readDataset(path string) (dataset, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var set dataset
	ids := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		r, err := parseRow(strings.TrimRight(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s: %.60q: %w", path, line, err)
		}
		if ids[r.id] {
			return nil, fmt.Errorf("%s: two lines are %s", path, r.id)
		}
		ids[r.id] = true
		set = append(set, r)
	}
	return set, nil
}

func parseRow(line string) (row, error) {
	words := strings.Split(line, "\t")
	if len(words) != 6 {
		return row{}, fmt.Errorf("%d fields, want 6", len(words))
	}
	key, err := parseForm(words[2])
	if err != nil {
		return row{}, err
	}
	value, err := parseForm(words[3])
	if err != nil {
		return row{}, err
	}
	headers, err := parseHeaders(words[5])
	if err != nil {
		return row{}, err
	}
	r := row{check: words[0], id: words[1], now: words[4] == "now"}
	r.fields = fields{form(key), form(value), words[4], headersForm(headers)}
	if !r.now {
		if _, err := strconv.ParseInt(words[4], 10, 64); err != nil {
			return row{}, err
		}
	}
	return r, nil
}

// parseForm reads null, x…, or r and a length.
func parseForm(text string) ([]byte, error) {
	if text == "null" {
		return nil, nil
	}
	if digits, ok := strings.CutPrefix(text, "x"); ok {
		b, err := hex.DecodeString(digits)
		return append([]byte{}, b...), err
	}
	digits, ok := strings.CutPrefix(text, "r")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > 1<<20 {
		return nil, fmt.Errorf("%.20q is neither null nor x… nor r…", text)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return b, nil
}

func parseHeaders(text string) ([]kgo.RecordHeader, error) {
	if text == "none" {
		return nil, nil
	}
	var out []kgo.RecordHeader
	for header := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(header, "=")
		if !ok {
			return nil, fmt.Errorf("%.20q is no header", header)
		}
		n, err := parseForm(name)
		if err != nil {
			return nil, err
		}
		v, err := parseForm(value)
		if err != nil {
			return nil, err
		}
		out = append(out, kgo.RecordHeader{Key: string(n), Value: v})
	}
	return out, nil
}

// form is the canonical form of bytes.
func form(b []byte) string {
	if b == nil {
		return "null"
	}
	return "x" + hex.EncodeToString(b)
}

func headersForm(headers []kgo.RecordHeader) string {
	if len(headers) == 0 {
		return "none"
	}
	out := make([]string, len(headers))
	for i, h := range headers {
		out[i] = form([]byte(h.Key)) + "=" + form(h.Value)
	}
	return strings.Join(out, ",")
}

// fieldsOf is what a record is, as text.
func fieldsOf(r *kgo.Record) fields {
	return fields{form(r.Key), form(r.Value), strconv.FormatInt(r.Timestamp.UnixMilli(), 10), headersForm(r.Headers)}
}

// record makes a record of a row; where the row leaves the time open it is now.
func (r row) record(topic string) (*kgo.Record, error) {
	key, err := parseForm(r.fields.key)
	if err != nil {
		return nil, err
	}
	value, err := parseForm(r.fields.value)
	if err != nil {
		return nil, err
	}
	headers, err := parseHeaders(r.fields.headers)
	if err != nil {
		return nil, err
	}
	at := time.Now().Truncate(time.Millisecond)
	if !r.now {
		ms, err := strconv.ParseInt(r.fields.timestamp, 10, 64)
		if err != nil {
			return nil, err
		}
		at = time.UnixMilli(ms)
	}
	return &kgo.Record{Topic: topic, Key: key, Value: value, Headers: headers, Timestamp: at}, nil
}

// rowsOf are the lines that a check writes. All codecs write the same ones.
func (d dataset) rowsOf(check string) []row {
	if strings.HasPrefix(check, "codec-") {
		check = "codec"
	}
	var out []row
	for _, r := range d {
		if r.check == check {
			out = append(out, r)
		}
	}
	return out
}

// has reports whether an id is one of a line.
func (d dataset) has(id string) bool {
	for _, r := range d {
		if r.id == id {
			return true
		}
	}
	return false
}
