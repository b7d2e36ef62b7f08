package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Weights: how much memory a request may take for each byte of its frame, the
// frame itself included. A body that would take more is refused before it is
// decoded, so the ceiling on bytes in flight is the truth whatever is sent.
const (
	// plainWeight is enough for the smallest entries any client has reason to
	// send: a partition of Fetch 4 is 16 bytes on the wire and 360 in memory.
	plainWeight = 24
	// produceWeight is enough for a Produce of one small record per partition. It
	// is half of the others', so that the largest frame (1.2 GiB of a ceiling of
	// 4) does not wait for an empty house.
	produceWeight = 12
	// txnWeight is that of what a transaction may have thousands of in one request:
	// a partition is 4 bytes on the wire and 204 in memory, an offset, whose row is
	// made at once, 18 and 816.
	txnWeight = 52
	// smallRequest is the frame that gets all of freeDecoded.
	smallRequest = 2 << 10
)

// Weigh is the memory set aside for a request of so many bytes.
func (r *Row) Weigh(size int) int64 {
	free := min(size, smallRequest) * (freeDecoded / smallRequest)
	return int64(size)*int64(r.weight) + int64(free)
}

// shapeOf is the layout of a request. A new API needs a line here; the tests
// compare it with kmsg at every version, and weigh its worst bodies.
func shapeOf(key int16) *shape {
	switch kmsg.Key(key) {
	case kmsg.Produce:
		return newShape(9, "n@3 2 4 [560: s@-12 16@13 [480: 4 b4 ] ]")
	case kmsg.Fetch:
		return newShape(12, `4@-14 4 4 4@3 1@4 4@7 4@7
			[160: s@-12 16@13 [360: 4 4@9 8 4@12 8@5 4 #0:16 #1:8 ] ]
			[72: s@-12 16@13 (4: 4 ) ]@7 s@11 #0:n #1:{ 4 8 }`)
	case kmsg.ListOffsets:
		return newShape(6, "4 1@2 [104: s [240: 4 4@4 8 4@-0 ] ] 4@10")
	case kmsg.Metadata: // the answers of its names have a limit of their own
		return newShape(9, "[40: 16@10 n ] 1@4 1@8-10 1@8")
	case kmsg.OffsetCommit:
		return newShape(8, "s 4@1 s@1 n@7 8@2-4 [160: s@-9 16@10 [280: 4 8 8@1-1 4@6 n ] ]")
	case kmsg.OffsetFetch:
		return newShape(6, `s@-7 [180: s (64: 4 ) ]@-7
			[240: s n@9 4@9 [180: s@-9 16@10 (64: 4 ) ] ]@8 1@7`)
	case kmsg.DeleteGroups:
		return newShape(2, "(120: s )")
	case kmsg.OffsetDelete:
		return newShape(neverFlexible, "s [160: s [64: 4 ] ]")
	case kmsg.FindCoordinator:
		return newShape(3, "s@-3 1@1 (240: s )@4")
	case kmsg.JoinGroup:
		return newShape(6, "s 4 4@1 s n@5 s [160: s b2 ] n@8")
	case kmsg.Heartbeat:
		return newShape(4, "s 4 s n@3")
	case kmsg.LeaveGroup:
		return newShape(4, "s s@-2 [200: s n n@5 ]@3")
	case kmsg.SyncGroup:
		return newShape(4, "s 4 s n@3 n@5 n@5 [160: s b2 ]")
	case kmsg.DescribeGroups:
		return newShape(5, "(300: s ) 1@3")
	case kmsg.ListGroups:
		return newShape(3, "(16: s )@4 (16: s )@5")
	case kmsg.SASLHandshake:
		return newShape(neverFlexible, "s")
	case kmsg.ApiVersions:
		return newShape(3, "s@3 s@3 n@5 4@5")
	case kmsg.InitProducerID:
		return newShape(2, "n 4 8@3 2@3 1@6 1@6")
	case kmsg.AddPartitionsToTxn:
		return newShape(3, "s@-3 8@-3 2@-3 [300: s (200: 4 ) ]@-3 [300: s 8 2 1 [300: s (200: 4 ) ] ]@4")
	case kmsg.AddOffsetsToTxn:
		return newShape(3, "s 8 2 s")
	case kmsg.EndTxn:
		return newShape(3, "s 8 2 1")
	case kmsg.TxnOffsetCommit:
		return newShape(3, "s s 8 2 4@3 s@3 n@3 [300: s@-5 16@6 [800: 4 8 4@2 n ] ]")
	case kmsg.DescribeProducers:
		return newShape(0, "[520: s (700: 4 ) ]")
	case kmsg.DescribeTransactions:
		return newShape(0, "(440: s )")
	case kmsg.ListTransactions:
		return newShape(0, "(120: s ) (8: 8 ) 8@1 n@2")
	case kmsg.SASLAuthenticate:
		return newShape(2, "b")
	case kmsg.CreateTopics:
		return newShape(5, "[640: s 4 2 [48: 4 (4: 4 ) ] [240: s n ] ] 4 1@1")
	case kmsg.DeleteTopics:
		return newShape(4, "(240: s )@-5 [240: n 16 ]@6 4")
	case kmsg.DescribeACLs:
		return newShape(2, "1 n 1@1 n n 1 1")
	case kmsg.CreateACLs:
		return newShape(2, "[112: 1 s 1@1 s s 1 1 ]")
	case kmsg.DeleteACLs:
		return newShape(2, "[112: 1 n 1@1 n n 1 1 ]")
	case kmsg.DescribeConfigs: // what is described has a limit of its own
		return newShape(4, "[400: 1 s (24: s ) ] 1@1 1@3")
	case kmsg.AlterConfigs:
		return newShape(2, "[480: 1 s [240: s n ] ] 1")
	case kmsg.DescribeLogDirs:
		return newShape(2, "[200: s (64: 4 ) ]")
	case kmsg.CreatePartitions:
		return newShape(2, "[360: s 4 [40: (4: 4 ) ] ] 4 1")
	case kmsg.IncrementalAlterConfigs:
		return newShape(1, "[480: 1 s [160: s 1 n ] ] 1")
	case kmsg.ListConfigResources:
		return newShape(0, "(1: 1 )@1")
	case kmsg.DescribeTopicPartitions:
		return newShape(0, "[200: s ] 4 ?{ s 4 }")
	case kmsg.DescribeCluster:
		return newShape(0, "1 1@1 1@2")
	}
	panic(fmt.Sprintf("api: no shape for key %d", key))
}

func weightOf(key int16) int {
	switch kmsg.Key(key) {
	case kmsg.Produce:
		return produceWeight
	case kmsg.AddPartitionsToTxn, kmsg.TxnOffsetCommit:
		return txnWeight
	}
	return plainWeight
}
