package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/edge/topicconf"
	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

const (
	recordPrefix = "qk:topiccfg:" // cell-http §4.8
	recordPage   = 1000
	recordPages  = 32
)

// errTruncated is a scan that did not see every record.
var errTruncated = errors.New("the scan of topic records was cut short")

// errMisaligned is an answer to something else than was asked.
var errMisaligned = errors.New("the cell's answer to the scan of topic records is not one result")

// width is what is declared of one queue.
type width struct {
	topic   string
	queueID string
	n       int32     // partitions; 0: none declared
	window  int64     // s of deduplication; 0: none
	until   time.Time // declared before the queue was there: whatever its id, until then
}

// widths are declared widths by topic name. A nil widths was never scanned.
type widths []width

// of finds what is declared of this very queue; a record of an earlier queue of
// the same name does not count, and one that was written before its queue counts
// for a while.
func (w widths) of(topic, queueID string, now time.Time) (width, bool) {
	i, ok := slices.BinarySearchFunc(w, topic, func(w width, topic string) int { return cmp.Compare(w.topic, topic) })
	if !ok {
		return width{}, false
	}
	mine := w[i].queueID == queueID
	if !w[i].until.IsZero() {
		mine = now.Before(w[i].until)
	}
	if !mine {
		return width{}, false
	}
	return w[i], true
}

// over lays w over older widths: what both declare is w's.
func (w widths) over(older widths) widths {
	all := slices.Concat(w, older)
	sortWidths(all)
	return slices.CompactFunc(all, func(a, b width) bool { return a.topic == b.topic })
}

func sortWidths(w widths) {
	slices.SortStableFunc(w, func(a, b width) int { return cmp.Compare(a.topic, b.topic) })
}

// topicRecord is the part of a topic record that a listing needs.
type topicRecord struct {
	QueueID    *string         `json:"qid"`
	Partitions *int64          `json:"partitions"`
	At         int64           `json:"at"`
	Pending    bool            `json:"pending"`
	Set        json.RawMessage `json:"set"` // options as they were sent; odd ones spoil no width
}

// window is the deduplication window a record tells of, in seconds. Without one
// the log is taken to have none: then nothing is promised of resends.
func (r *topicRecord) window() int64 {
	var set struct {
		Window int64 `json:"dedupWindowSeconds"`
	}
	if json.Unmarshal(r.Set, &set) != nil {
		return 0
	}
	return max(set.Window, 0)
}

// scan reads the declared widths of a tenant. A cell without KV (404) has no
// topic records. A scan that fails declares nothing: losing a width would narrow
// a topic and re-hash live keys. One that is cut short returns what it saw with
// errTruncated.
func (c *Catalog) scan(ctx context.Context, s tenancy.Scope) (widths, error) {
	found := widths{}
	after := ""
	for range recordPages {
		res, err := c.cell.KV(ctx, s, []proxyclient.KVOp{{
			Op: proxyclient.KVGetPrefix, Prefix: recordPrefix, Limit: recordPage, After: after,
		}})
		if e, ok := proxyclient.AsError(err); ok && e.Kind == proxyclient.KindStatus && e.Status == 404 {
			return widths{}, nil
		}
		if err != nil {
			return nil, err
		}
		if len(res) != 1 {
			return nil, errMisaligned
		}
		for _, row := range res[0].Rows {
			found = c.declare(found, row)
		}
		if !res[0].Truncated {
			sortWidths(found)
			return found, nil
		}
		if res[0].NextAfter <= after {
			break // it would not get on
		}
		after = res[0].NextAfter
	}
	sortWidths(found)
	return found, errTruncated
}

// declare adds what one record declares; one that does not parse, or declares
// nothing, counts as absent.
func (c *Catalog) declare(found widths, row proxyclient.KVRow) widths {
	var r topicRecord
	if json.Unmarshal(row.Value, &r) != nil {
		return found
	}
	w := width{topic: strings.TrimPrefix(row.Key, recordPrefix), window: r.window()}
	if r.Partitions != nil {
		w.n = int32(min(max(*r.Partitions, 0), int64(c.cfg.MaxPartitions)))
	}
	if w.n == 0 && w.window == 0 {
		return found
	}
	if r.QueueID != nil {
		w.queueID = *r.QueueID
	}
	if r.Pending {
		if !c.believed(r.At) {
			return found
		}
		w.until = time.UnixMilli(r.At).Add(topicconf.PendingLife)
	}
	return append(found, w)
}
