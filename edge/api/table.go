package api

import "github.com/twmb/franz-go/pkg/kerr"

// Table is the one list of APIs: the ApiVersions answer, the dispatch gate, the
// docs' API page and metric labels are made from it. A window is never wider
// than what is decoded, answered in its own shape and tested at both ends (B1).
func Table() []Row {
	return []Row{
		on(0, 13, (*Handlers).produce, kerr.UnknownServerError, kerr.CorruptMessage, kerr.UnknownTopicOrPartition,
			kerr.LeaderNotAvailable, kerr.RequestTimedOut, kerr.MessageTooLarge, kerr.InvalidTopicException,
			kerr.InvalidRequiredAcks, kerr.TopicAuthorizationFailed, kerr.UnsupportedForMessageFormat,
			kerr.OutOfOrderSequenceNumber, kerr.DuplicateSequenceNumber, kerr.InvalidProducerEpoch, kerr.InvalidTxnState,
			kerr.InvalidProducerIDMapping, kerr.ProducerFenced, kerr.TransactionalIDAuthorizationFailed, kerr.UnsupportedCompressionType, kerr.InvalidRecord, kerr.UnknownTopicID).frames(produceFrame).takesRoom(),
		on(4, 17, (*Handlers).fetch, kerr.UnknownServerError, kerr.OffsetOutOfRange, kerr.UnknownTopicOrPartition,
			kerr.NotLeaderForPartition, kerr.TopicAuthorizationFailed, kerr.FetchSessionIDNotFound,
			kerr.InvalidFetchSessionEpoch, kerr.UnknownTopicID, kerr.FetchSessionTopicIDError).frames(fetchFrame),
		on(1, 10, (*Handlers).listOffsets, kerr.UnknownServerError, kerr.UnknownTopicOrPartition,
			kerr.NotLeaderForPartition, kerr.TopicAuthorizationFailed, kerr.UnsupportedVersion).frames(listFrame),
		on(0, 13, (*Handlers).metadata, kerr.UnknownTopicOrPartition, kerr.LeaderNotAvailable, kerr.InvalidTopicException,
			kerr.TopicAuthorizationFailed, kerr.UnknownTopicID).frames(listFrame).padding().takesRoom(),
		on(2, 10, (*Handlers).offsetCommit, kerr.UnknownServerError, kerr.UnknownTopicOrPartition, kerr.OffsetMetadataTooLarge,
			kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.IllegalGeneration, kerr.InvalidGroupID,
			kerr.UnknownMemberID, kerr.RebalanceInProgress, kerr.InvalidCommitOffsetSize, kerr.GroupAuthorizationFailed,
			kerr.FencedInstanceID, kerr.UnknownTopicID).frames(listFrame).keeping(),
		on(1, 10, (*Handlers).offsetFetch, kerr.UnknownServerError, kerr.CoordinatorLoadInProgress,
			kerr.InvalidGroupID, kerr.GroupAuthorizationFailed,
			kerr.UnstableOffsetCommit, kerr.UnknownTopicID).frames(listFrame).padding(),
		on(0, 5, (*Handlers).findCoordinator, kerr.CoordinatorNotAvailable, kerr.GroupAuthorizationFailed, kerr.InvalidGroupID,
			kerr.InvalidRequest, kerr.TransactionalIDAuthorizationFailed),
		on(0, 9, (*Handlers).joinGroup, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.InconsistentGroupProtocol, kerr.InvalidGroupID,
			kerr.UnknownMemberID, kerr.InvalidSessionTimeout, kerr.RebalanceInProgress, kerr.GroupAuthorizationFailed,
			kerr.MemberIDRequired, kerr.GroupMaxSizeReached, kerr.FencedInstanceID).frames(listFrame).keeping(),
		on(0, 4, (*Handlers).heartbeat, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.IllegalGeneration, kerr.InvalidGroupID, kerr.UnknownMemberID,
			kerr.RebalanceInProgress, kerr.GroupAuthorizationFailed, kerr.FencedInstanceID).keeping(),
		on(0, 5, (*Handlers).leaveGroup, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.InvalidGroupID, kerr.UnknownMemberID, kerr.GroupAuthorizationFailed,
			kerr.FencedInstanceID).keeping(),
		on(0, 5, (*Handlers).syncGroup, kerr.UnknownServerError, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.IllegalGeneration,
			kerr.InconsistentGroupProtocol, kerr.InvalidGroupID, kerr.UnknownMemberID, kerr.RebalanceInProgress,
			kerr.GroupAuthorizationFailed, kerr.FencedInstanceID).frames(listFrame).keeping(),
		on(0, 6, (*Handlers).describeGroups, kerr.UnknownServerError, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.InvalidGroupID,
			kerr.GroupAuthorizationFailed, kerr.GroupIDNotFound),
		on(0, 5, (*Handlers).listGroups, kerr.CoordinatorNotAvailable, kerr.GroupAuthorizationFailed),
		pre(0, 1, (*Handlers).saslHandshake, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState),
		pre(0, 4, (*Handlers).apiVersions, kerr.UnsupportedVersion, kerr.InvalidRequest),
		on(0, 5, (*Handlers).initProducerID, kerr.CoordinatorNotAvailable, kerr.InvalidRequest, kerr.InvalidProducerEpoch,
			kerr.InvalidTransactionTimeout, kerr.ConcurrentTransactions, kerr.TransactionalIDAuthorizationFailed,
			kerr.ProducerFenced),
		on(0, 3, (*Handlers).addPartitionsToTxn, kerr.UnknownTopicOrPartition, kerr.CoordinatorNotAvailable,
			kerr.InvalidProducerEpoch, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping, kerr.ConcurrentTransactions,
			kerr.UnknownProducerID, kerr.ProducerFenced).frames(listFrame),
		on(0, 4, (*Handlers).addOffsetsToTxn, kerr.CoordinatorNotAvailable, kerr.InvalidGroupID, kerr.GroupAuthorizationFailed,
			kerr.InvalidProducerEpoch, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping, kerr.ConcurrentTransactions,
			kerr.UnknownProducerID, kerr.ProducerFenced),
		on(0, 4, (*Handlers).endTxn, kerr.CoordinatorNotAvailable, kerr.InvalidProducerEpoch, kerr.InvalidTxnState,
			kerr.InvalidProducerIDMapping, kerr.ConcurrentTransactions, kerr.UnknownProducerID, kerr.ProducerFenced).keeping(),
		on(0, 4, (*Handlers).txnOffsetCommit, kerr.UnknownTopicOrPartition, kerr.OffsetMetadataTooLarge,
			kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.IllegalGeneration, kerr.InvalidGroupID, kerr.GroupAuthorizationFailed,
			kerr.UnknownMemberID, kerr.RebalanceInProgress, kerr.InvalidCommitOffsetSize, kerr.InvalidProducerEpoch, kerr.InvalidTxnState,
			kerr.InvalidProducerIDMapping, kerr.FencedInstanceID, kerr.ProducerFenced, kerr.TransactionAbortable).frames(listFrame).keeping(),
		pre(0, 2, (*Handlers).saslAuthenticate, kerr.SaslAuthenticationFailed, kerr.IllegalSaslState),
		on(2, 7, (*Handlers).createTopics, append(adminCodes(), kerr.InvalidTopicException, kerr.TopicAlreadyExists,
			kerr.InvalidPartitions, kerr.InvalidReplicaAssignment, kerr.InvalidConfig, kerr.InvalidRequest,
			kerr.ThrottlingQuotaExceeded)...).frames(listFrame),
		on(1, 6, (*Handlers).deleteTopics, append(adminCodes(), kerr.UnknownTopicOrPartition, kerr.InvalidRequest, kerr.UnknownTopicID)...),
		on(1, 3, (*Handlers).describeACLs, kerr.SecurityDisabled),
		on(1, 3, (*Handlers).createACLs, kerr.SecurityDisabled),
		on(1, 3, (*Handlers).deleteACLs, kerr.SecurityDisabled),
		on(1, 4, (*Handlers).describeConfigs, kerr.UnknownTopicOrPartition, kerr.RequestTimedOut,
			kerr.TopicAuthorizationFailed, kerr.InvalidRequest).frames(listFrame),
		on(0, 2, (*Handlers).alterConfigs, alterCodes()...),
		on(1, 4, (*Handlers).describeLogDirs, kerr.RequestTimedOut, kerr.TopicAuthorizationFailed).frames(listFrame),
		on(0, 3, (*Handlers).createPartitions, kerr.UnknownTopicOrPartition, kerr.RequestTimedOut,
			kerr.TopicAuthorizationFailed, kerr.InvalidPartitions, kerr.InvalidReplicaAssignment, kerr.InvalidRequest),
		on(0, 1, (*Handlers).incrementalAlterConfigs, alterCodes()...),
		on(0, 1, (*Handlers).listConfigResources, kerr.UnsupportedVersion, kerr.RequestTimedOut,
			kerr.TopicAuthorizationFailed),
		on(0, 0, (*Handlers).describeTopicPartitions, kerr.UnknownTopicOrPartition, kerr.LeaderNotAvailable,
			kerr.InvalidTopicException).frames(listFrame),
		on(0, 2, (*Handlers).describeCluster, kerr.InvalidRequest, kerr.MismatchedEndpointType,
			kerr.UnsupportedEndpointType),
		on(0, 2, (*Handlers).deleteGroups, kerr.UnknownServerError, kerr.CoordinatorLoadInProgress,
			kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.InvalidGroupID, kerr.GroupAuthorizationFailed, kerr.NonEmptyGroup,
			kerr.GroupIDNotFound),
		on(0, 0, (*Handlers).offsetDelete, kerr.UnknownServerError, kerr.UnknownTopicOrPartition,
			kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.InvalidGroupID,
			kerr.GroupAuthorizationFailed, kerr.InvalidRequest, kerr.GroupIDNotFound, kerr.GroupSubscribedToTopic),
		on(0, 0, (*Handlers).describeProducers, kerr.UnknownServerError, kerr.UnknownTopicOrPartition,
			kerr.NotLeaderForPartition, kerr.InvalidTopicException, kerr.TopicAuthorizationFailed),
		on(0, 0, (*Handlers).describeTransactions, kerr.CoordinatorNotAvailable, kerr.TransactionalIDAuthorizationFailed,
			kerr.InvalidRequest, kerr.TransactionalIDNotFound),
		on(0, 1, (*Handlers).listTransactions),
	}
}

// adminCodes are what the cell's failures become where topics are made or
// deleted.
func adminCodes() []*kerr.Error {
	return []*kerr.Error{kerr.UnknownServerError, kerr.RequestTimedOut, kerr.TopicAuthorizationFailed}
}

// alterCodes are those of the two APIs that change configs.
func alterCodes() []*kerr.Error {
	return []*kerr.Error{
		kerr.UnknownTopicOrPartition, kerr.RequestTimedOut, kerr.TopicAuthorizationFailed,
		kerr.InvalidConfig, kerr.InvalidRequest,
	}
}

// row finds an API by its key; nil where there is none.
func (h *Handlers) row(key int16) *Row {
	for i := range h.table {
		if h.table[i].Key == key {
			return &h.table[i]
		}
	}
	return nil
}
