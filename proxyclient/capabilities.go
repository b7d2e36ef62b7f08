package proxyclient

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/queen-mq/queen-edge/tenancy"
)

const (
	// contractTxnOps is how many key-value operations one transaction takes by
	// contract (§3.8).
	contractTxnOps = 64
	// mostTxnOps bounds what an announcement is believed to be.
	mostTxnOps = 1 << 16
	// maxAnnounced bounds the credentials whose listings are remembered; one
	// that is not has what /auth/me said.
	maxAnnounced = 1024
)

// TxnOps is how many key-value operations one Transaction takes: what the cell
// announces to this credential, as long as its entry lives, else the contract's.
func (c *Client) TxnOps(s tenancy.Scope) int {
	can, ok := c.announced.Get(tenancy.KeyOf(s, s.Credential()))
	if !ok {
		can = s.Capabilities()
	}
	return max(can.TxnKV, contractTxnOps)
}

func (c *Client) hear(s tenancy.Scope, h http.Header) {
	c.announced.Set(tenancy.KeyOf(s, s.Credential()), capabilities(h))
}

// capabilities reads x-queen-capabilities: words and word=number, by commas.
// What is not known is passed over.
func capabilities(h http.Header) tenancy.Capabilities {
	var can tenancy.Capabilities
	for _, line := range h.Values("X-Queen-Capabilities") {
		for word := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
			if n, err := strconv.Atoi(value); err == nil && strings.EqualFold(name, "txn-kv") && n > 0 {
				can.TxnKV = min(n, mostTxnOps)
			}
		}
	}
	return can
}
