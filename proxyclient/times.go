package proxyclient

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-faster/jx"
	"github.com/queen-mq/queen-edge/tenancy"
)

// TimeQuery asks for the first record appended at or after Timestamp (ms ≥ 0).
type TimeQuery struct {
	Queue     string
	Partition int32
	Timestamp int64
}

// TimeAnswer is the record found; −1 and −1 where nothing is that late.
type TimeAnswer struct {
	Offset    int64
	Timestamp int64 // its append time in ms; −1 also where it cannot be read
	Error     EntryError
}

// perTimeAnswer is the most an honest entry takes: a name of 249 bytes that
// may be escaped sixfold, and a few numbers.
const perTimeAnswer = 2 << 10

// OffsetsForTimes asks for up to 1024 partitions (§3.6): one answer each, in
// order. A cell without the route (HTTP 404) gives an error that is ErrNoTimes.
func (c *Client) OffsetsForTimes(ctx context.Context, s tenancy.Scope, q []TimeQuery) ([]TimeAnswer, error) {
	if len(q) == 0 {
		return nil, nil
	}
	buf := c.getBuffer()
	defer c.putBuffer(buf)
	buf.b = appendTimes(buf.b, q)
	var answers []TimeAnswer
	limit := maxAnswer + perTimeAnswer*len(q)
	err := c.ask(ctx, postTarget(RouteTimes, "/api/v1/fetch/offsets"), claimOf(s), buf.b, limit, false, func(body []byte) (err error) {
		answers, err = decodeTimes(body, len(q))
		return err
	})
	if e, ok := AsError(err); ok && e.Kind == KindStatus && e.Status == http.StatusNotFound {
		e.Err = ErrNoTimes
	}
	return answers, err
}

func appendTimes(b []byte, q []TimeQuery) []byte {
	b = append(b, `{"entries":[`...)
	for i := range q {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		b = appendLane(b, q[i].Queue, q[i].Partition)
		b = append(b, `,"timestamp":`...)
		b = append(strconv.AppendInt(b, q[i].Timestamp, 10), '}')
	}
	return append(b, "]}"...)
}

func decodeTimes(body []byte, n int) ([]TimeAnswer, error) {
	answers, seen := make([]TimeAnswer, 0, n), false
	err := object(body, func(d *jx.Decoder, key []byte) error {
		if string(key) != "entries" || seen {
			return d.Skip()
		}
		seen = true
		return d.Arr(func(d *jx.Decoder) error {
			if len(answers) == n {
				return errCount
			}
			a, err := decodeTime(d)
			answers = append(answers, a)
			return err
		})
	})
	if err == nil && len(answers) != n {
		err = errCount
	}
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func decodeTime(d *jx.Decoder) (TimeAnswer, error) {
	a := TimeAnswer{Offset: -1, Timestamp: -1}
	err := d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		switch string(key) {
		case "offset":
			return optional(d, &a.Offset, d.Int64)
		case "ts":
			raw, err := d.Raw()
			a.Timestamp = appendTime(raw)
			return err
		case "error":
			if isNull(d) {
				return nil
			}
			text, err := d.StrBytes()
			a.Error = entryError(text)
			return err
		}
		return d.Skip()
	})
	if err == nil && a.Offset < -1 {
		err = errNegativeOffset
	}
	if a.Offset < 0 {
		a.Timestamp = -1
	}
	return a, err
}
