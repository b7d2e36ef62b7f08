package proxyclient

import (
	"errors"
	"reflect"
	"testing"
)

func TestOffsetsForTimes(t *testing.T) {
	t.Parallel()
	c, cell := talk(t, says(`{"x":1,"entries":[
		{"queue":"orders","partition":"2","offset":17,"ts":"2026-10-02T09:00:00.123211Z","highWatermark":42,"logStartOffset":0},
		{"offset":null,"ts":null,"error":null},
		{"error":"UNKNOWN_TOPIC_OR_PARTITION","ts":null,"offset":null},
		{"ts":7,"offset":0},{"error":"NEW"},{"ts":"2026-10-02T09:00:00Z"}]}`))
	q := []TimeQuery{{"orders", 2, 1790000000000}, {"a", 0, 0}, {"b", 0, 1}, {"c", 1, 1}, {"d", 1, 1}, {"e", 1, 1}}
	got, err := c.OffsetsForTimes(t.Context(), testScope(t), q)
	want := []TimeAnswer{{17, ts123, EntryOK}, {-1, -1, EntryOK}, {-1, -1, EntryUnknownTopicOrPartition}, {0, -1, EntryOK}, {-1, -1, EntryUnknownMarker}, {-1, -1, EntryOK}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	h := cell.last(t)
	if h.uri != "/api/v1/fetch/offsets" || h.body != `{"entries":[{"queue":"orders","partition":"2","timestamp":1790000000000},{"queue":"a","partition":"0","timestamp":0},`+
		`{"queue":"b","partition":"0","timestamp":1},{"queue":"c","partition":"1","timestamp":1},{"queue":"d","partition":"1","timestamp":1},{"queue":"e","partition":"1","timestamp":1}]}` {
		t.Errorf("%+v", h)
	}
	if got, err := c.OffsetsForTimes(t.Context(), testScope(t), nil); got != nil || err != nil || len(cell.requests()) != 1 {
		t.Error("no questions made a call")
	}
}

func TestOffsetsForTimesFailures(t *testing.T) {
	t.Parallel()
	q := []TimeQuery{{"a", 0, 0}}
	for _, body := range []string{
		``, `[]`, `{}`, `{"entries":[]}`, `{"entries":[{},{}]}`, `{"entries":[{"offset":-2}]}`, `{"entries":[{"offset":"1"}]}`,
		`{"entries":[{"offset":1,"error":1}]}`, `{"entries":[7]}`, `{"entries":null}`, `{"entries":[{}]}x`,
	} {
		c, _ := talk(t, says(body))
		got, err := c.OffsetsForTimes(t.Context(), testScope(t), q)
		mustError(t, err, KindBody)
		if got != nil || errors.Is(err, ErrNoTimes) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
	for status, noTimes := range map[int]bool{404: true, 403: false, 500: false} {
		c, _ := talk(t, refuses(status, `{"error":"not available","code":"route_blocked"}`))
		_, err := c.OffsetsForTimes(t.Context(), testScope(t), q)
		if e := mustError(t, err, KindStatus); errors.Is(err, ErrNoTimes) != noTimes || e.Code != "route_blocked" {
			t.Error(status, err)
		}
	}
}
