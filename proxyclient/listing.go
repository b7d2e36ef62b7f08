package proxyclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"

	"github.com/go-faster/jx"
	"github.com/queen-mq/queen-edge/tenancy"
)

const (
	// maxListing bounds a listing: at the few hundred bytes a queue takes in
	// the longest form, more than 100,000 queues.
	maxListing = 64 << 20
	// maxAnswer bounds the small answers.
	maxAnswer = 1 << 20
)

// Queue is one row of the listing (§3.1). Names are as the cell gave them: some
// may not be legal topic names.
type Queue struct {
	ID         string // opaque; changes when the queue is dropped and made again; may be empty
	Name       string
	Partitions int // partitions that exist now; a count, not a width
}

// ListQueuesAs lists the queues with a claim's own bearer: the login check of
// §2.7. With Identify it makes the client a tenancy.Cell.
func (c *Client) ListQueuesAs(ctx context.Context, claim tenancy.Claim) ([]Queue, error) {
	return c.listQueues(ctx, listTarget(), claim)
}

func (c *Client) listQueues(ctx context.Context, t target, claim tenancy.Claim) ([]Queue, error) {
	var queues []Queue
	err := c.ask(ctx, t, claim, nil, maxListing, false, func(body []byte) (err error) {
		queues, err = decodeListing(body)
		return err
	})
	return queues, err
}

// ListQueues lists the tenant's queues (§3.1), and learns what the cell
// announces with them.
func (c *Client) ListQueues(ctx context.Context, s tenancy.Scope) ([]Queue, error) {
	t := listTarget()
	t.head = func(h http.Header) { c.hear(s, h) }
	return c.listQueues(ctx, t, claimOf(s))
}

// Configure makes a queue or changes the named options of one (§3.2) and
// returns its id, which may be empty. A member of options called queue is
// overruled.
func (c *Client) Configure(ctx context.Context, s tenancy.Scope, queue string, options map[string]any) (queueID string, err error) {
	bag := make(map[string]any, len(options)+1)
	maps.Copy(bag, options)
	bag["queue"] = queue
	body, err := json.Marshal(bag)
	if err != nil {
		return "", fmt.Errorf("configure options: %w", err)
	}
	err = c.ask(ctx, postTarget(RouteConfigure, "/api/v1/configure"), claimOf(s), body, maxAnswer, false, func(body []byte) (err error) {
		queueID, err = decodeConfigured(body)
		return err
	})
	return queueID, err
}

// DeleteQueue deletes a queue and its records (§3.3). False means that there
// was none.
func (c *Client) DeleteQueue(ctx context.Context, s tenancy.Scope, queue string) (deleted bool, err error) {
	err = c.ask(ctx, deleteTarget(queue), claimOf(s), nil, maxAnswer, false, func(body []byte) (err error) {
		deleted, err = decodeDeleted(body)
		return err
	})
	return deleted, err
}

func decodeListing(body []byte) ([]Queue, error) {
	queues, seen := []Queue{}, false
	err := object(body, func(d *jx.Decoder, key []byte) error {
		if string(key) != "queues" {
			return d.Skip()
		}
		seen, queues = true, queues[:0]
		return d.Arr(func(d *jx.Decoder) error {
			q, err := decodeQueue(d)
			queues = append(queues, q)
			return err
		})
	})
	if err == nil && !seen {
		err = errors.New("the listing has no queues member")
	}
	if err != nil {
		return nil, err
	}
	return queues, nil
}

func decodeQueue(d *jx.Decoder) (q Queue, err error) {
	err = d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		switch string(key) {
		case "name":
			q.Name, err = d.Str()
			return err
		case "id":
			return optional(d, &q.ID, d.Str)
		case "partitions":
			return optional(d, &q.Partitions, d.Int)
		}
		return d.Skip()
	})
	if err != nil {
		return q, err
	}
	if q.Name == "" {
		return q, errors.New("a queue without a name")
	}
	if q.Partitions < 0 || q.Partitions > math.MaxInt32 {
		return q, errors.New("a partition count out of range")
	}
	return q, nil
}

func decodeConfigured(body []byte) (id string, err error) {
	configured := false
	err = object(body, func(d *jx.Decoder, key []byte) (err error) {
		switch string(key) {
		case "configured":
			configured, err = d.Bool()
			return err
		case "queueId":
			return optional(d, &id, d.Str)
		case "error":
			return refusedInside(d)
		}
		return d.Skip()
	})
	if err == nil && !configured {
		err = errors.New("the answer does not say configured")
	}
	return id, err
}

func decodeDeleted(body []byte) (deleted bool, err error) {
	err = object(body, func(d *jx.Decoder, key []byte) error {
		switch string(key) {
		case "deleted":
			return optional(d, &deleted, d.Bool)
		case "error":
			return refusedInside(d)
		}
		return d.Skip()
	})
	return deleted && err == nil, err
}
