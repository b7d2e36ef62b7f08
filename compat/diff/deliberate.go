package main

// entry is a difference that is meant. Where several match, the first counts;
// one that never matches fails the run. In all but Row * stands for anything and
// | separates alternatives.
type entry struct {
	API    string
	Case   string // empty: in any case
	Path   string
	Ours   string
	Theirs string
	Row    string // of docs/DEVIATIONS.md: its first cell
	Also   string // paths that follow, whatever their values; never a code
}

// Paths that several entries have.
const (
	partitionCode = "Topics[*].Partitions[*].ErrorCode"
	inPartitions  = "Topics[*].Partitions[*].*"
)

// deliberate is the list.
func deliberate() []entry {
	var list []entry
	list = append(list, deliberateEverywhere()...)
	list = append(list, deliberateSmall()...)
	list = append(list, deliberateProduce()...)
	list = append(list, deliberateOffsets()...)
	list = append(list, deliberateGroups()...)
	list = append(list, deliberateTxns()...)
	return append(list, deliberateRead()...)
}

func deliberateEverywhere() []entry {
	const (
		leftOver = "Bytes after the last field of a request are ignored"
		hidden   = "Topics named `__…` are internal topics"
		null     = "A null where the protocol allows none closes the connection"
		epochs   = "Leader epochs count leadership changes"
		twice    = "What a request names twice is answered once, or refused (42)"
		senses   = "An isolation level or byte limit that makes no sense fails the partition (−1)"
		replica  = "A replica id of 0 or more is a follower, and 6 for one that is not known"
		asked    = "Authorized operations are a bitmask when asked for"
	)
	return []entry{
		{API: "*", Case: "one byte more|a hundred bytes more", Path: "outcome", Ours: "closed", Theirs: "answered|answered 0|answered 34|answered 24|answered 25|answered 49|answered 54", Row: leftOver},

		{API: "Metadata", Case: "the offsets topic|hidden", Path: "Topics[__*].ErrorCode", Ours: "3", Theirs: "0", Row: hidden, Also: "Topics[__*"},
		{API: "Metadata", Path: "Topics[__*]", Ours: "absent", Theirs: "present", Row: hidden},
		{API: "Fetch|ListOffsets", Case: "a hidden topic|the offsets topic", Path: partitionCode, Ours: "3|100", Theirs: "0", Row: hidden, Also: inPartitions},
		{API: "Produce", Case: "a hidden topic", Path: partitionCode, Ours: "3|100", Theirs: "0", Row: hidden, Also: inPartitions},
		{API: "Produce", Case: "a hidden topic, acks 0", Path: "outcome", Ours: "closed", Theirs: "no answer", Row: hidden},

		{API: "Metadata", Case: "null topics", Path: "outcome", Ours: "answered 0", Theirs: "closed", Row: null},
		{API: "Metadata", Case: "count -2", Path: "outcome", Ours: "closed", Theirs: "answered 0", Row: "Any negative count is null, where null may be"},
		{API: "FindCoordinator", Case: "null keys", Path: "outcome", Ours: "answered 0", Theirs: "closed", Row: null},
		{API: "SASLAuthenticate", Case: "null bytes", Path: "outcome", Ours: "answered 34", Theirs: "closed", Row: null},

		{API: "Metadata|ListOffsets|DescribeTopicPartitions", Path: "*.LeaderEpoch", Ours: "-1", Theirs: "0", Row: epochs},
		{API: "Fetch", Path: "*.Batches.LeaderEpochs", Ours: "-1", Theirs: "0*", Row: epochs},
		{API: "Fetch|ListOffsets", Case: "leader epoch 1|leader epoch 99", Path: partitionCode, Ours: "0", Theirs: "75", Row: epochs, Also: inPartitions},
		{API: "ListOffsets", Case: "leader epoch -2", Path: partitionCode, Ours: "0", Theirs: "74", Row: epochs, Also: inPartitions},
		{API: "Fetch", Case: "last fetched epoch 1", Path: partitionCode, Ours: "0", Theirs: "1", Row: epochs, Also: inPartitions},

		{API: "ListOffsets", Case: "a partition twice|a topic twice", Path: partitionCode, Ours: "0", Theirs: "42", Row: twice, Also: inPartitions},
		{API: "ListOffsets", Case: "a missing topic's partition twice", Path: partitionCode, Ours: "3", Theirs: "42", Row: twice, Also: inPartitions},
		{API: "Produce|Fetch", Case: "a partition twice|a topic twice", Path: "Topics[*]|Topics[*].Partitions[*]", Ours: "present|absent", Theirs: "absent|present", Row: twice, Also: "Topics*"},
		{API: "ListOffsets", Case: "a partition twice|a topic twice|a missing topic's partition twice", Path: "Topics[*#2]|Topics[*].Partitions[*#2]", Ours: "present", Theirs: "absent", Row: twice},

		{API: "Produce|Fetch|ListOffsets", Case: "a topic without partitions", Path: "Topics[*]", Ours: "present", Theirs: "absent", Row: "A topic without partitions is left out of the answer", Also: "Topics"},

		{API: "Fetch", Case: "isolation level *", Path: "ErrorCode|" + partitionCode, Ours: "0", Theirs: "-1", Row: senses, Also: "Topics*"},
		{API: "ListOffsets", Case: "isolation level *", Path: partitionCode, Ours: "0", Theirs: "-1", Row: senses, Also: inPartitions},
		{API: "Fetch", Case: "partition bytes 0|bytes 0", Path: "*.Records[*]", Ours: "present", Theirs: "absent", Row: senses},
		{API: "Fetch", Case: "partition bytes -1|bytes -1", Path: partitionCode, Ours: "0", Theirs: "-1", Row: senses, Also: inPartitions},

		{API: "Fetch", Case: "replica 0|replica 1", Path: partitionCode, Ours: "0", Theirs: "6", Row: replica, Also: inPartitions},

		{API: "Metadata", Case: "operations *", Path: "AuthorizedOperations|*.AuthorizedOperations", Ours: "-2147483648", Theirs: "*", Row: asked},
		{API: "DescribeTopicPartitions", Path: "*.AuthorizedOperations", Ours: "-2147483648", Theirs: "*", Row: asked},
		{API: "DescribeCluster", Case: "*operations*", Path: "ClusterAuthorizedOperations", Ours: "-2147483648", Theirs: "*", Row: asked},
	}
}

// deliberateSmall are those of the APIs without topics, and of Metadata.
func deliberateSmall() []entry {
	const (
		features    = "Announces features such as `transaction.version` and `group.version`"
		others      = "Announces all its APIs, and versions up to its own"
		cluster     = "The cluster id is random"
		creates     = "Auto-creation answers 3 or 5 first; the client asks again"
		byID        = "A topic is asked for by id from version 12 on; in 10 and 11 that is 42 for the whole request"
		neither     = "A topic with neither name nor id fails the whole request"
		group       = "Group ids may be empty, and have any length"
		directories = "DescribeLogDirs names directories and their free space"
		sentence    = "Most refusals carry no sentence"

		address = "NodeID|Host|Port|ErrorMessage|Coordinators[*].NodeID|Coordinators[*].Host|Coordinators[*].Port|Coordinators[*].ErrorMessage"
	)
	return []entry{
		{API: "ApiVersions", Path: "ApiKeys[*]", Ours: "absent", Theirs: "present", Row: others},
		{API: "ApiVersions", Path: "ApiKeys.order", Ours: "*", Theirs: "*", Row: others},
		{API: "ApiVersions", Path: "ApiKeys[*].MaxVersion", Ours: "*", Theirs: "*", Row: others},
		{API: "ApiVersions", Path: "SupportedFeatures|FinalizedFeatures", Ours: "null", Theirs: "list", Row: features, Also: "*Features[*"},
		{API: "ApiVersions", Path: "FinalizedFeaturesEpoch", Ours: "-1", Theirs: "*", Row: features},

		{API: "Metadata|DescribeCluster", Path: "ClusterID", Ours: `"queen"`, Theirs: "*", Row: cluster},
		{API: "Metadata", Case: "created|a name of 249", Path: "Topics[*].ErrorCode", Ours: "0", Theirs: "3", Row: creates, Also: "Topics[*].Partitions*|Topics[*].TopicID"},

		{API: "Metadata", Case: "by id*|by the id of nothing", Path: "Topics[*].ErrorCode", Ours: "0|100", Theirs: "42", Row: byID, Also: "*"},
		{API: "Metadata", Case: "neither name nor id", Path: "Topics[*].ErrorCode", Ours: "17", Theirs: "42", Row: neither, Also: "*"},
		{API: "Metadata", Case: "neither name nor id", Path: "ErrorCode", Ours: "0", Theirs: "-1", Row: neither},

		{API: "FindCoordinator", Case: "an empty group id|a group id of 256|batched, one bad", Path: "ErrorCode|Coordinators[*].ErrorCode", Ours: "24", Theirs: "0", Row: group, Also: address},
		{API: "DescribeLogDirs", Path: "Dirs[*].Dir|Dirs[*].TotalBytes|Dirs[*].UsableBytes", Ours: "*", Theirs: "*", Row: directories},
		{API: "FindCoordinator", Path: "*.ErrorMessage", Ours: `"*"`, Theirs: `""`, Row: sentence},

		{API: "InitProducerID", Case: "empty transactional id", Path: "ErrorCode", Ours: "0", Theirs: "42", Row: "An empty transactional id is 42", Also: "ProducerID|ProducerEpoch"},
		{API: "InitProducerID", Case: "bump*", Path: "ProducerEpoch", Ours: "*", Theirs: "0", Row: "A request that names its id and epoch (KIP-360) gets a new id at epoch 0"},
	}
}
