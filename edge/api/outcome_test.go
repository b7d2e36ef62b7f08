package api

import (
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// codesIn finds every error code of a response the long way, to hold the plans
// against.
func codesIn(v reflect.Value) (codes int) {
	switch v.Kind() {
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				codes += codesIn(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "ErrorCode" {
				codes++
			} else {
				codes += codesIn(v.Field(i))
			}
		}
	}
	return codes
}

// setCode sets the nth error code of a response.
func setCode(v reflect.Value, n *int, code int16) {
	switch v.Kind() {
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				setCode(v.Index(i), n, code)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch {
			case v.Type().Field(i).Name != "ErrorCode":
				setCode(v.Field(i), n, code)
			case *n == 0:
				v.Field(i).SetInt(int64(code))
				*n--
			default:
				v.Field(i).SetInt(0)
				*n--
			}
		}
	}
}

// Whichever code of an answer says it, its outcome is the worst one.
func TestOutcomeSeesEveryCode(t *testing.T) {
	rows := planned(Table())
	for i := range rows {
		row := &rows[i]
		resp := row.newRequest().ResponseKind()
		v := reflect.ValueOf(resp).Elem()
		filled(v)
		count := codesIn(v)
		if (count > 0) != (row.codes != nil) {
			t.Errorf("%s has %d codes, and a plan: %v", row.Name, count, row.codes != nil)
		}
		for at := range count {
			for code, want := range map[int16]Outcome{0: Answered, kerr.UnknownTopicOrPartition.Code: Refused, kerr.RequestTimedOut.Code: Unavailable} {
				n := at
				if setCode(v, &n, code); row.outcome(resp) != want {
					t.Errorf("%s: code %d at %d is %v, want %v", row.Name, code, at, row.outcome(resp), want)
				}
			}
		}
	}
	if got := rows[0].outcome(noReply{}); got != Answered {
		t.Errorf("no reply is %v", got)
	}
}

// BenchmarkOutcome: what it costs to sort an answer of so many partitions.
func BenchmarkOutcome(b *testing.B) {
	row := &planned(Table())[1]
	for name, partitions := range map[string]int{"1": 1, "100": 100, "10000": 10_000} {
		b.Run(name, func(b *testing.B) {
			resp := &kmsg.FetchResponse{Topics: []kmsg.FetchResponseTopic{{Partitions: make([]kmsg.FetchResponseTopicPartition, partitions)}}}
			b.ReportAllocs()
			for b.Loop() {
				if row.outcome(resp) != Answered {
					b.Fatal("an error")
				}
			}
		})
	}
}
