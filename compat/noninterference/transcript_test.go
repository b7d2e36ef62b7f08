package noninterference

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/batch"
)

// transcript is what a tenant was answered, in words that do not depend on what
// is drawn at random or on when it was: an id is called after the order in which
// it was first seen, and a time is so much after the run's beginning. Everything
// else stays as it is.
type transcript struct {
	began int64 // ms
	lines []string
	names map[string]string // kind and value of an id, to its name
	count map[string]int    // of a kind
}

func newTranscript(began time.Time) *transcript {
	return &transcript{began: began.UnixMilli(), names: map[string]string{}, count: map[string]int{}}
}

// add puts down a line.
func (t *transcript) add(format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

// answer puts down an answer.
func (t *transcript) answer(resp kmsg.Response) {
	var out strings.Builder
	t.write(&out, "", reflect.ValueOf(resp).Elem())
	t.add("  %s v%d %s", kmsg.NameForKey(resp.Key()), resp.GetVersion(), out.String())
}

// kinds are the fields that hold ids drawn at random, or made of one.
func kindOf(field string) string {
	switch field {
	case "ProducerID":
		return "producer"
	case "MemberID", "LeaderID":
		return "member"
	case "TopicID":
		return "topic"
	case "SessionID":
		return "session"
	}
	return ""
}

func (t *transcript) write(out *strings.Builder, field string, v reflect.Value) {
	if kind := kindOf(field); kind != "" && !v.IsZero() && (!v.CanInt() || v.Int() > 0) {
		out.WriteString(t.name(kind, fmt.Sprint(v.Interface())))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		t.writeStruct(out, v)
	case reflect.Pointer:
		if v.IsNil() {
			out.WriteString("null")
			return
		}
		t.write(out, field, v.Elem())
	case reflect.Slice:
		t.writeSlice(out, field, v)
	case reflect.String:
		out.WriteString(strconv.Quote(v.String()))
	default:
		if strings.HasSuffix(field, "Timestamp") {
			out.WriteString(t.time(v.Int()))
			return
		}
		fmt.Fprint(out, v.Interface())
	}
}

func (t *transcript) writeStruct(out *strings.Builder, v reflect.Value) {
	if tags, ok := v.Interface().(kmsg.Tags); ok {
		fmt.Fprintf(out, "%d tags", tags.Len())
		return
	}
	out.WriteByte('{')
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		out.WriteString(name + ":")
		if name == "RecordBatches" {
			t.writeRecords(out, v.Field(i).Bytes())
		} else {
			t.write(out, name, v.Field(i))
		}
		out.WriteByte(' ')
	}
	out.WriteByte('}')
}

func (t *transcript) writeSlice(out *strings.Builder, field string, v reflect.Value) {
	switch {
	case v.IsNil():
		out.WriteString("null")
		return
	case v.Type().Elem().Kind() == reflect.Uint8:
		fmt.Fprintf(out, "%q", v.Bytes())
		return
	}
	out.WriteByte('[')
	for i := range v.Len() {
		t.write(out, field, v.Index(i))
		out.WriteByte(' ')
	}
	out.WriteByte(']')
}

// writeRecords writes the records of a fetched partition one by one.
func (t *transcript) writeRecords(out *strings.Builder, stored []byte) {
	var dec batch.Decoder
	out.WriteByte('[')
	for len(stored) > 0 {
		b, rest, err := batch.Next(stored)
		if err == nil {
			budget := batch.Budget{Bytes: 16 << 20, Records: 1 << 16}
			err = dec.Each(&b, &budget, func(r *batch.Record) error {
				fmt.Fprintf(out, "%d@%s %q=%q ", r.Offset, t.time(r.Timestamp), r.Key, r.Value)
				return nil
			})
		}
		if err != nil {
			fmt.Fprintf(out, "unreadable: %v", err)
			break
		}
		stored = rest
	}
	out.WriteByte(']')
}

func (t *transcript) name(kind, value string) string {
	key := kind + " " + value
	if t.names[key] == "" {
		t.count[kind]++
		t.names[key] = fmt.Sprintf("%s#%d", kind, t.count[kind])
	}
	return t.names[key]
}

// time is a time of the run by its distance from the run's beginning; one from
// before is a client's own and stays as it is.
func (t *transcript) time(ms int64) string {
	if ms < t.began {
		return strconv.FormatInt(ms, 10)
	}
	return fmt.Sprintf("began+%d", ms-t.began)
}

// differs finds the first line at which two transcripts part; −1: nowhere.
func differs(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// lineOf is a line, or what stands for one that is not there.
func lineOf(lines []string, i int) string {
	if i >= len(lines) {
		return "(nothing)"
	}
	return lines[i]
}
