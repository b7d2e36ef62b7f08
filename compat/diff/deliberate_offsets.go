package main

// deliberateOffsets are those of committed offsets and of groups without members.
func deliberateOffsets() []entry {
	const (
		exists   = "The topic has to exist when an offset is committed (3)"
		negative = "Negative offsets are stored"
		empty    = "An empty group id may be committed to"
		stranger = "A commit of a member in a group without members is 25; one with a member id and no generation is taken"
		ids      = "Group ids may be empty, and have any length"
		gone     = "Deleting offsets of a partition that does not exist is 3"
	)
	return []entry{
		{API: "OffsetCommit", Case: "a missing topic, 1|a missing partition, 1", Path: partitionCode, Ours: "0", Theirs: "3", Row: exists},
		{API: "OffsetCommit", Case: "a missing topic, 2|a missing partition, 2", Path: "Topics|Topics[*]", Ours: "*", Theirs: "*", Row: exists, Also: "Topics*"},
		{API: "OffsetCommit", Case: "offset -2, 1", Path: partitionCode, Ours: "28", Theirs: "0", Row: negative},
		{API: "OffsetCommit", Case: "offset -2, 2", Path: "Topics|Topics[*]", Ours: "*", Theirs: "*", Row: negative, Also: "Topics*"},
		{API: "OffsetCommit", Case: "an empty group id", Path: partitionCode, Ours: "24", Theirs: "0", Row: empty},
		{API: "OffsetFetch", Case: "an empty group id", Path: "ErrorCode|" + partitionCode, Ours: "24", Theirs: "0", Row: empty},
		{API: "OffsetFetch", Case: "an empty group id", Path: "Topics[*].Partitions[*].Offset", Ours: "-1", Theirs: "7", Row: empty},
		{API: "OffsetCommit", Case: "a member without a generation", Path: partitionCode, Ours: "22", Theirs: "0", Row: stranger},
		{API: "OffsetCommit", Case: "generation 3|a stranger", Path: partitionCode, Ours: "22", Theirs: "25", Row: stranger},
		{API: "DescribeGroups", Case: "an empty group id", Path: "Groups[*].ErrorCode", Ours: "24", Theirs: "0|69", Row: ids},
		{API: "DescribeGroups", Case: "an empty group id", Path: "Groups[*].State|Groups[*].ErrorMessage", Ours: "*", Theirs: "*", Row: ids},
		{API: "OffsetDelete", Case: "after a commit, *", Path: partitionCode, Ours: "0", Theirs: "3", Row: gone},
	}
}

// deliberateGroups are those of groups with members.
func deliberateGroups() []entry {
	const (
		assigning = "A member that commits while the leader assigns gets 27"
		follower  = "A follower that joins again with the same metadata gets the present generation back"
		emptied   = "A commit to a group whose last member left is 25"
	)
	return []entry{
		{API: "OffsetCommit", Case: "groups *: commit while it is assigned", Path: partitionCode, Ours: "0", Theirs: "27", Row: assigning},
		{API: "JoinGroup", Case: "groups *, a follower: b joins once more", Path: "outcome", Ours: "no answer", Theirs: "answered 0", Row: follower},
		{API: "OffsetCommit", Case: "groups *: commit after the leave", Path: partitionCode, Ours: "22", Theirs: "25", Row: emptied},
	}
}
