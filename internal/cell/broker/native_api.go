package broker

import "time"

// The native client's side of a queue: consumer groups that take records under
// a lease and acknowledge them one by one. The HTTP contract leaves these
// routes out; what is here was read off the official client.

// QueueMode is the group of consumers that name none.
const QueueMode = "__QUEUE_MODE__"

// Limits of native consumption.
const (
	MaxPopRecords    = 10_000 // of one pop
	MaxPopPartitions = 1024   // of one pop
	MaxAcks          = 10_000 // of one call
	MaxGroupBytes    = 255    // of a group's name
	MaxGroups        = 1000   // of one queue
	MaxAckErrorBytes = 1 << 10
)

// PartitionID names a partition of one life of a queue to native clients.
type PartitionID [16]byte

// LeaseID names a lease. The zero LeaseID is none.
type LeaseID [16]byte

// PopRequest asks for records that nobody of the group holds or has settled.
type PopRequest struct {
	Queue     string // empty: every queue with Namespace and Task
	Partition string // empty: any
	Namespace string // empty: any
	Task      string // empty: any
	Group     string // empty: QueueMode

	Batch      int           // records, 1 … MaxPopRecords (clamped)
	Partitions int           // taken from at most, 1 … MaxPopPartitions (clamped)
	Wait       time.Duration // clamped to 0 … 30 s

	Commit   bool // settles at delivery: no lease, at most once
	Conflate bool // the group's policy when it is new; needs a Group and no Commit

	// Where a group that is new to the queue begins: New with what comes from
	// now on, else with what was appended at or after Since, else with all.
	New   bool
	Since time.Time
}

// Message is a delivered record.
type Message struct {
	Queue       string
	Partition   string
	PartitionID PartitionID
	Record
	Retries int64 // how often the group has failed it
}

// PopResult is one delivery.
type PopResult struct {
	Lease      LeaseID // of all messages; zero when they are settled or there are none
	Messages   []Message
	Conflating bool // the group's stored policy, of any queue that was looked at
	Conflict   bool // it is not the one that was asked for
}

// AckStatus is what became of a delivered record.
type AckStatus uint8

// Verdicts of a consumer.
const (
	Completed AckStatus = iota
	FailedOnce
	RetryLater // given back without counting
	DeadLetter
)

// Ack is the verdict on one record.
type Ack struct {
	Partition     PartitionID
	TransactionID string
	Lease         LeaseID // zero: the lease there is
	Group         string  // empty: QueueMode
	Status        AckStatus
	Error         string // kept with a dead letter, cut to MaxAckErrorBytes
}

// AckResult answers the Ack at the same index.
type AckResult struct {
	Refused   string // why it was not taken; empty: it was
	Queue     string
	Partition string
	Released  bool // the group's hold on the partition ended with this call
	Dead      bool // the record is a dead letter now
}

// Renewal is what became of a lease.
type Renewal struct {
	Partitions int // held under it; 0: the lease is gone
	Expires    time.Time
}

// DeadQuery selects dead letters of one queue.
type DeadQuery struct {
	Queue     string
	Group     string    // empty: any
	Partition string    // empty: any
	From, To  time.Time // when they died; zero: any
	Offset    int
	Limit     int
}

// Dead is a record that a group gave up.
type Dead struct {
	Message
	Group  string
	Error  string
	DiedAt time.Time
}

// Seek says where a group goes on.
type Seek struct {
	ToEnd bool
	Since time.Time // unless ToEnd
}

// The methods of *Broker for native clients:
//
//	(*Broker) Pop(ctx, t Tenant, r PopRequest) (PopResult, error)
//	(*Broker) Ack(ctx, t Tenant, acks []Ack) ([]AckResult, error)
//	(*Broker) Renew(t Tenant, id LeaseID) Renewal
//	(*Broker) Depth(t Tenant, queue, group string) (Depth, bool)
//	(*Broker) DeadLetters(t Tenant, q DeadQuery) (page []Dead, total int, err error)
//	(*Broker) DeleteGroup(ctx, t Tenant, group, queue string, forget bool) (partitions int, err error) // queue "": all
//	(*Broker) SeekGroup(ctx, t Tenant, group, queue string, to Seek) (partitions int, err error)
//	(*Broker) MoveSubscription(ctx, t Tenant, group string, since time.Time) (queues int, err error)
