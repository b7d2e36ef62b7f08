// Package window makes topics as a gateway with a deduplication window makes
// them: a queue with the window, and the record that tells of it.
package window

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Cell is where topics are made.
type Cell struct {
	URL   string
	Token string // with scope admin
}

// Make makes a topic whose log knows resends for so many seconds. 0: it does not,
// and no record says anything.
func (c Cell) Make(ctx context.Context, topic string, partitions, seconds int) error {
	var made struct {
		QueueID string `json:"queueId"`
	}
	options := map[string]any{"dedupWindowSeconds": seconds}
	if err := c.post(ctx, "/api/v1/configure", map[string]any{"queue": topic, "options": options}, &made); err != nil {
		return err
	}
	record := map[string]any{"qid": made.QueueID, "partitions": partitions}
	if seconds > 0 {
		record["set"] = options
	}
	put := map[string]any{"op": "put", "ns": "queen-kafka", "key": "qk:topiccfg:" + topic, "value": record, "forever": true}
	return c.post(ctx, "/api/v1/kv", map[string]any{"operations": []any{put}}, nil)
}

func (c Cell) post(ctx context.Context, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.200s", path, resp.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
