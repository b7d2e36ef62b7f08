package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Phase is the state of a group.
type Phase uint8

// Phases of a group.
const (
	Empty Phase = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead    // not there
	Unknown // coordinated by another gateway
)

// String is the name Kafka has for a phase.
func (p Phase) String() string {
	names := [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}
	if int(p) >= len(names) {
		return "Unknown"
	}
	return names[p]
}

// Protocol is one assignor (or what another protocol type has for one) that a
// member speaks. Metadata is kept byte for byte.
type Protocol struct {
	Name     string
	Metadata []byte
}

// JoinRequest is a JoinGroup. Its byte slices are kept as they are.
type JoinRequest struct {
	MemberID     string
	InstanceID   string // of a static member (KIP-345); empty: a dynamic one
	ClientID     string
	Host         string
	Session      time.Duration
	Rebalance    time.Duration // ≤ 0: the session timeout
	ProtocolType string
	Protocols    []Protocol
	// TellsID says that a newcomer is told its id before it may join (v4, KIP-394).
	TellsID bool
	// Skips says that a leader can be told not to assign (v9, KIP-814).
	Skips bool
	// Reattach takes up the wait of a request that was parked where the group was
	// before; it never counts as a second JoinGroup.
	Reattach bool
}

// JoinAnswer is what a JoinGroup is answered.
type JoinAnswer struct {
	Code           *kerr.Error
	Generation     int32 // −1 with a refusal
	ProtocolType   string
	Protocol       string
	Leader         string
	MemberID       string
	SkipAssignment bool
	Members        []Candidate // for the leader alone
}

// Candidate is a member as the leader sees it.
type Candidate struct {
	ID         string
	InstanceID string // empty: dynamic
	Metadata   []byte // for the elected protocol
}

// SyncRequest is a SyncGroup. Its byte slices are kept as they are.
type SyncRequest struct {
	Generation   int32
	MemberID     string
	InstanceID   string
	ProtocolType *string // nil: not said (before v5)
	Protocol     *string
	Assignments  []Assignment // the leader's
}

// Assignment is what the leader assigns to a member.
type Assignment struct {
	MemberID string
	Data     []byte
}

// SyncAnswer is what a SyncGroup is answered.
type SyncAnswer struct {
	Code         *kerr.Error
	ProtocolType string
	Protocol     string
	Assignment   []byte
}

// Leaver names a member that leaves; by its instance alone where MemberID is
// empty.
type Leaver struct{ MemberID, InstanceID string }

// Description is a live group as DescribeGroups shows it.
type Description struct {
	State        Phase
	ProtocolType string
	Protocol     string // while Stable
	Members      []MemberDescription
}

// MemberDescription is one member of a Description.
type MemberDescription struct {
	ID, InstanceID, ClientID, Host string
	Metadata                       []byte // for the protocol, while Stable
	Assignment                     []byte
}

// Listing is one live group.
type Listing struct {
	ID           string
	ProtocolType string // empty while the group is
	State        Phase
}

// Reason says why a group rebalanced.
type Reason uint8

// Reasons of a rebalance.
const (
	Joined   Reason = iota // a new member
	Rejoined               // a known member joined again
	Left                   // LeaveGroup
	Expired                // a session timeout ran out
	Unsynced               // a member joined a generation and never asked for its assignment
	Reasons                // how many there are
)

// String is the reason's label.
func (r Reason) String() string {
	return [...]string{"joined", "rejoined", "left", "expired", "unsynced", "none"}[min(r, Reasons)]
}

// Stats are the groups of the process, counted.
type Stats struct {
	Groups     [Dead]int // by Phase
	Members    int
	Rebalances [Reasons]int64 // since the start, by Reason
	Clamped    int64          // rebalance timeouts cut to MaxRebalance, since the start
	Released   int64          // groups let go to another gateway, since the start
}
