package gokit

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// row is a line of the data set.
type row struct {
	check, id string
	record    Record
}

func readRows(file string) ([]row, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var rows []row
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) != 6 {
			return nil, fmt.Errorf("data set: %.60q", line)
		}
		r := row{check: f[0], id: f[1], record: Record{Key: bytesOf(f[2]), Value: bytesOf(f[3])}}
		if ms, err := strconv.ParseInt(f[4], 10, 64); err == nil {
			r.record.Time = time.UnixMilli(ms)
		}
		if f[5] != "none" {
			for h := range strings.SplitSeq(f[5], ",") {
				name, value, _ := strings.Cut(h, "=")
				r.record.Headers = append(r.record.Headers, Header{string(bytesOf(name)), bytesOf(value)})
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func bytesOf(text string) []byte {
	if n, err := strconv.Atoi(strings.TrimPrefix(text, "r")); err == nil && text[0] == 'r' {
		const letters = "abcdefghijklmnopqrstuvwxyz"
		return []byte(strings.Repeat(letters, n/26+1)[:n])
	}
	if text == "null" {
		return nil
	}
	b, err := hex.DecodeString(strings.TrimPrefix(text, "x"))
	if err != nil {
		panic(err)
	}
	return append([]byte{}, b...)
}

func form(b []byte, nullable bool) string {
	if b == nil && nullable {
		return "null"
	}
	return "x" + hex.EncodeToString(b)
}
