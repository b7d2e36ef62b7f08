package group

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Coordinator holds the groups of all tenants. It is safe for concurrent use.
type Coordinator struct{}

// Config is what a Coordinator works with.
type Config struct{}

// New makes a Coordinator without groups.
func New(Config) *Coordinator { return &Coordinator{} }

// CheckCommit says whether a commit may be written (kafka-surface §8.5): nil, or
// the code of every partition in it. A generation below 0 with an empty member
// id is a simple consumer: allowed while the group is unknown or empty. A commit
// that is allowed counts as a sign of life of its member.
func (c *Coordinator) CheckCommit(s tenancy.Scope, groupID string, generation int32, memberID string, instanceID *string) *kerr.Error {
	if generation < 0 && memberID == "" {
		return nil
	}
	return kerr.IllegalGeneration
}

// Delete forgets an empty group at once; it then describes as Dead. found says
// whether it was there. A group with members is left alone: 68.
func (c *Coordinator) Delete(s tenancy.Scope, groupID string) (found bool, refusal *kerr.Error) {
	return false, nil
}

// Subscribed reports whether a member of a live group of protocol type
// "consumer" is subscribed to a topic. Metadata that cannot be read counts as
// subscribed to everything.
func (c *Coordinator) Subscribed(s tenancy.Scope, groupID, topic string) bool { return false }

// Listing is one live group.
type Listing struct {
	ID           string
	ProtocolType string // empty while the group is
	State        Phase
}

// List is the live groups of a tenant, sorted by id.
func (c *Coordinator) List(s tenancy.Scope) []Listing { return nil }

// Phase is the state of a group.
type Phase uint8

// Phases of a group.
const (
	Empty Phase = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead // not there
)

// String is the name Kafka has for a phase.
func (p Phase) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}[p]
}
