package main

// deliberateProduce are those of Produce. A case with its own row comes before
// the fields that differ everywhere.
func deliberateProduce() []entry {
	const (
		malformed = "Malformed records are 87, an unknown magic 2, a codec that fails −1"
		behind    = "Bytes after a batch are ignored, a second batch is 87"
		empty     = "Empty records are 87, and null ones are never answered"
		deltas    = "Offsets within an uncompressed batch are not looked at"
		ahead     = "A record's time may be an hour ahead at most (`message.timestamp.after.max.ms`)"
		longAgo   = "A batch from longer ago than the last five is 45"
		partly    = "A batch of which a part is stored is 45"
		leader    = "The sequence of an idempotent producer is judged by the partition's leader"
		again     = "A resend is known to the partition's leader, whatever connection it comes over"
		noEpoch   = "A producer id without an epoch is taken, with a bad one it is 47"
	)
	code := func(cases, ours, theirs, row string) entry {
		return entry{API: "Produce", Case: cases, Path: partitionCode, Ours: ours, Theirs: theirs, Row: row, Also: inPartitions}
	}
	return []entry{
		code("a topic that is not there", "0", "3", "Topics are created by Metadata only"),
		code("illegal *", "17", "3", "A name that no topic can have is 3"),
		code("acks 2, missing topic", "21", "3|100", "The topic is looked for before acks"),
		code("transactional id given", "48|49", "0", "A Produce with a transactional id and no producer is stored"),

		code("one byte", "43", "87", malformed),
		code("magic 3|magic -1", "43", "2", malformed),
		code("a batch that is cut|a header that is cut|a length too large", "2", "87", malformed),
		code("a negative count of headers|a record that is cut|a record with bytes left over", "2", "87", malformed),
		code("codec *", "2", "-1", malformed),
		{API: "Produce", Case: "a version of old|null client id|empty client id|client id *", Path: "outcome", Ours: "answered|answered 0", Theirs: "closed", Row: "Announces Produce 0 to 2, and closes on them (from 4.0 on)"},
		code("bytes after the batch", "43", "0", behind),
		code("two batches", "0", "87", behind),
		code("empty records", "0", "87", empty),
		{API: "Produce", Case: "null records", Path: "outcome", Ours: "answered 0", Theirs: "no answer", Row: empty},
		code("offset deltas *", "87", "0", deltas),
		code("a header's name that is not UTF-8", "87", "0", "A header's name is any bytes"),
		code("a record of 2 MiB", "0", "10", "A batch has 1 MiB at most (`message.max.bytes`)"),

		code("time the smallest|time the largest|time in two hours|time in ten years", "0", "32", ahead),
		{API: "Fetch", Case: "after time the *|after time in *", Path: "Topics[*].Partitions[*].Records[*]", Ours: "present", Theirs: "absent", Row: ahead, Also: inPartitions},
		{API: "Fetch", Case: "after time -1", Path: "*.Records[*].Timestamp", Ours: "*", Theirs: "-1", Row: "A record without a time (−1) is served without one"},

		code("half a batch again, 3|a batch long ago, 8|elsewhere, long ago, 8", "0", "45", longAgo),
		code("half a batch again, no window, 3|a batch long ago, no window, 8", "46", "45", longAgo),
		code("half a batch is new, 3|half a batch is new, 4|elsewhere, half a batch is new, 3", "0", "45", partly),
		code("elsewhere, a gap, 2|elsewhere, a gap, no window, 2", "0", "45", leader),
		code("elsewhere, a newer epoch not from 0, 2|elsewhere, a newer epoch not from 0, no window, 2", "0", "45", leader),
		code("elsewhere, an older epoch, 2|elsewhere, an older epoch, no window, 2", "0", "47", leader),
		code("elsewhere, half a batch is new, no window, 3|elsewhere, long ago, no window, 8", "0", "45", again),
		{API: "Produce", Case: "elsewhere, again, no window, *|elsewhere, a later one first, no window, *", Path: "*.BaseOffset", Ours: "*", Theirs: "*", Row: again},
		code("epoch -1|epoch -1, no window", "87", "0", noEpoch),
		code("epoch -2|epoch -2, no window", "87", "47", noEpoch),

		{API: "Produce", Path: "*.LogStartOffset|*.LogAppendTime", Ours: "-1", Theirs: "*", Row: "`log_start_offset` and `log_append_time` are filled in"},
		{API: "Produce", Path: "*.ErrorMessage", Ours: `"*"`, Theirs: "null", Row: "Most refusals carry no sentence"},
	}
}

// deliberateRead are those of Fetch and ListOffsets.
func deliberateRead() []entry {
	const (
		batches = "Stored batches are served as they came"
	)
	return []entry{
		{API: "Fetch", Path: "*.AbortedTransactions", Ours: "list", Theirs: "null", Row: "The list of aborted transactions is null for `read_uncommitted`"},
		{API: "Fetch", Path: "*.Batches.Codecs", Ours: "0", Theirs: "*", Row: batches},
		{API: "Fetch", Path: "*.Batches.Producers", Ours: "-1/-1/-1", Theirs: "-1/-1/-1, *", Row: batches},
		{API: "Fetch", Case: "from *|compressed, from the middle|last fetched epoch *|partition bytes 1|bytes 1|large, bytes 110000", Path: "*.Records[*]", Ours: "absent", Theirs: "present", Row: batches},
		{API: "ListOffsets", Case: "time 0|time 1|the time of the first|a time between", Path: "*.Timestamp|*.Offset", Ours: "*", Theirs: "*", Row: "A timestamp is looked up among the records' timestamps"},
		{API: "ListOffsets", Case: "time -3", Path: "*.Timestamp", Ours: "*", Theirs: "*", Row: "−3 finds the record with the largest timestamp (KIP-734)"},
		{API: "ListOffsets", Case: "a missing topic, time -3", Path: partitionCode, Ours: "3", Theirs: "35", Row: "A time nobody knows is 35, the topic is not looked for"},
	}
}
