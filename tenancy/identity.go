package tenancy

import (
	"context"
	"time"
)

// Identity is what /auth/me said of a credential (cell-http §2.6). An empty
// ClusterID is the settled answer "no identity": the credential stands for
// itself.
type Identity struct {
	ClusterID string // 1–128 of [A-Za-z0-9._:-], or empty
	Rights    Rights
	ExpiresAt time.Time // zero: the credential has no end

	Capabilities Capabilities
}

// Capabilities are what a cell announces beyond its contract
// (x-queen-capabilities). The zero value is the contract.
type Capabilities struct {
	TxnKV int // key-value operations of one transaction; 0: not announced
}

// Cell is what Verify asks. L is the cell's queue listing, handed through so
// that a successful login warms the catalog.
type Cell[L any] interface {
	// ListQueuesAs lists the queues with a claim's own bearer and Host. A nil
	// error proves the claim.
	ListQueuesAs(ctx context.Context, c Claim) (L, error)
	// Identify asks who the claim's bearer is. An error means "could not be
	// asked"; every settled answer, "no identity" included, is a nil error.
	Identify(ctx context.Context, c Claim) (Identity, error)
}
