package main

// deliberateTxns are those of transactions. They come before the fields that
// differ everywhere.
func deliberateTxns() []entry {
	const (
		markers   = "A commit writes a marker into each partition; the log grows by N+1, by N+1 at an abort too"
		dirty     = "`read_uncommitted` reads open and aborted transactions"
		offsets   = "Records of a transaction get their offsets at once"
		anyTopic  = "AddPartitionsToTxn of a topic or partition that does not exist is 3, and the others 55"
		nothing   = "EndTxn before a transaction began is 48, an abort too"
		nobody    = "An abort with a transactional id that nobody has is 49"
		noID      = "A request without a transactional id is 42"
		ahead     = "An epoch above the producer's is 90"
		old       = "An old epoch is 47"
		takenOver = "Taking over an open transaction raises the epoch twice"
		ended     = "A transaction that has ended shows when it began"
		unasked   = "A TxnOffsetCommit without AddOffsetsToTxn is 48, from version 4 on 120"
		abortable = "A batch of a partition that no transaction has is 120 from version 11 on"
		added     = "Since version 12 a batch adds its partition to the transaction"
		producers = "DescribeProducers lists idempotent producers, with their last sequences and times"
		exists    = "The topic has to exist when an offset is committed (3)"
		negative  = "Negative offsets are stored"
		empty     = "An empty group id may be committed to"
		stranger  = "A commit of a member in a group without members is 25; one with a member id and no generation is taken"

		all    = "transactions *, "
		end    = "Topics[*].Partitions[*].Offset|*.HighWatermark|*.LastStableOffset"
		member = "Topics[*].Partitions[*].ActiveProducers"
	)
	code := func(api, cases, path, ours, theirs, row string) entry {
		return entry{API: api, Case: cases, Path: path, Ours: ours, Theirs: theirs, Row: row}
	}
	return []entry{
		{API: "Produce", Case: all + "*", Path: "*.BaseOffset", Ours: "-1", Theirs: "*", Row: offsets},
		{API: "Fetch|ListOffsets", Case: all + "*, while it is open", Path: end + "|*.Batches.*|*.Records[*]", Ours: "*", Theirs: "*", Row: dirty},
		{API: "Fetch|ListOffsets", Case: all + "*, when *", Path: end + "|*.Batches.*|*.Records[*]|*.AbortedTransactions[*]", Ours: "*", Theirs: "*", Row: markers},

		code("AddPartitionsToTxn", all+"wrong places: *", partitionCode, "0", "3|55", anyTopic),
		code("EndTxn", all+"nothing begun: abort", "ErrorCode", "0", "48", nothing),
		code("EndTxn", all+"wrong producers: abort of another id", "ErrorCode", "0", "49", nobody),
		code("AddPartitionsToTxn|AddOffsetsToTxn|TxnOffsetCommit|EndTxn", all+"wrong producers: * of no id", "ErrorCode|"+partitionCode, "48", "42", noID),
		code("AddPartitionsToTxn|AddOffsetsToTxn|EndTxn", all+"wrong producers: * of the epoch after*", "ErrorCode|"+partitionCode, "47", "90", ahead),
		code("Produce|TxnOffsetCommit", all+"wrong producers: * of the epoch before*|"+all+"fenced: * of the first", partitionCode, "90", "47", old),
		{API: "InitProducerID", Case: all + "fenced: init by another one", Path: "ProducerEpoch", Ours: "1", Theirs: "2", Row: takenOver},
		{API: "DescribeTransactions", Case: all + "* when it is *", Path: "TransactionStates[*].StartTimestamp", Ours: "-1", Theirs: "*", Row: ended},
		{API: "DescribeProducers", Path: member + "[*].CurrentTxnStartOffset", Ours: "-1", Theirs: "*", Row: producers},
		{API: "DescribeProducers", Path: "*.ErrorMessage", Ours: `"*"`, Theirs: "null", Row: "Most refusals carry no sentence"},
		{API: "DescribeProducers", Path: member + "[*]", Ours: "absent", Theirs: "present", Row: producers, Also: member},

		code("TxnOffsetCommit", all+"nothing begun: commit offsets without the group", partitionCode, "0", "48|120", unasked),
		code("TxnOffsetCommit", all+"wrong places: commit offsets of a missing *", partitionCode, "0", "3", exists),
		code("TxnOffsetCommit", all+"wrong places: commit offsets -2", partitionCode, "28", "0", negative),
		code("AddOffsetsToTxn", all+"wrong places: add offsets of a group without a name", "ErrorCode", "24", "0", empty),
		code("TxnOffsetCommit", all+"wrong places: commit offsets of a stranger|"+all+"wrong places: commit offsets of a generation", partitionCode, "22", "25", stranger),
		code("TxnOffsetCommit", all+"wrong places: commit offsets of an instance", partitionCode, "22", "0", stranger),
		code("Produce", all+"a commit: produce after the commit|"+all+"nothing begun: produce ", partitionCode, "48", "120", abortable),
		code("Produce", all+"a commit: produce after the commit|"+all+"nothing begun: produce ", partitionCode, "48", "0", added),
	}
}
