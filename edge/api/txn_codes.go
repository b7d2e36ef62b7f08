package api

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/edge/txn"
	"github.com/queen-mq/queen-edge/tenancy"
)

// outcomes is what a transaction's outcomes are called in one API. A lost or
// expired transaction gets the code that each real client takes as "abort, and
// go on" (B11).
type outcomes map[txn.Outcome]*kerr.Error

var addOutcomes = outcomes{ // AddPartitionsToTxn, AddOffsetsToTxn
	txn.Busy: kerr.ConcurrentTransactions, txn.NoRoom: kerr.ConcurrentTransactions,
	txn.TooMany: kerr.InvalidTxnState,
	txn.Unknown: kerr.InvalidProducerIDMapping, txn.OtherID: kerr.InvalidProducerIDMapping,
	txn.Fenced: kerr.ProducerFenced, txn.Ahead: kerr.InvalidProducerEpoch,
	txn.Invalid: kerr.InvalidTxnState, txn.TimedOut: kerr.UnknownProducerID, txn.Gone: kerr.UnknownProducerID,
}

var endOutcomes = outcomes{ // EndTxn
	txn.Busy: kerr.ConcurrentTransactions, txn.NoRoom: kerr.ConcurrentTransactions,
	txn.Unknown: kerr.InvalidProducerIDMapping, txn.OtherID: kerr.InvalidProducerIDMapping,
	txn.Fenced: kerr.ProducerFenced, txn.Ahead: kerr.InvalidProducerEpoch,
	txn.Invalid: kerr.InvalidTxnState, txn.TimedOut: kerr.InvalidTxnState, txn.Gone: kerr.UnknownProducerID,
}

var initOutcomes = outcomes{ // InitProducerId
	txn.Busy: kerr.ConcurrentTransactions, txn.NoRoom: kerr.ConcurrentTransactions,
	txn.Fenced: kerr.ProducerFenced,
}

var commitOutcomes = outcomes{ // TxnOffsetCommit
	txn.Busy: kerr.CoordinatorLoadInProgress, txn.NoRoom: kerr.CoordinatorLoadInProgress,
	txn.TooMany: kerr.InvalidCommitOffsetSize,
	txn.Unknown: kerr.InvalidProducerIDMapping, txn.OtherID: kerr.InvalidProducerIDMapping,
	txn.Fenced: kerr.ProducerFenced, txn.Ahead: kerr.InvalidProducerEpoch,
	txn.Invalid: kerr.InvalidTxnState, txn.TimedOut: kerr.IllegalGeneration, txn.Gone: kerr.IllegalGeneration,
}

var stageOutcomes = outcomes{ // Produce
	txn.Busy: kerr.RequestTimedOut, txn.NoRoom: kerr.RequestTimedOut,
	txn.TooLarge: kerr.MessageTooLarge,
	txn.Unknown:  kerr.InvalidTxnState, txn.OtherID: kerr.InvalidProducerIDMapping,
	txn.Fenced: kerr.ProducerFenced, txn.Ahead: kerr.InvalidProducerEpoch,
	txn.Invalid: kerr.InvalidTxnState, txn.TimedOut: kerr.InvalidTxnState, txn.Gone: kerr.InvalidTxnState,
	txn.OutOfOrder: kerr.OutOfOrderSequenceNumber, txn.AlreadyThere: kerr.DuplicateSequenceNumber,
}

// txnCodes is the column of EndTxn in cell-http §6; the other APIs of a
// transaction have the same: whatever the cell says, the client asks again.
var txnCodes = codes{
	noAnswer: kerr.CoordinatorNotAvailable, gateway: kerr.CoordinatorNotAvailable, throttled: kerr.CoordinatorNotAvailable,
	forbidden: kerr.CoordinatorNotAvailable, notFound: kerr.CoordinatorNotAvailable, tooLarge: kerr.CoordinatorNotAvailable,
	unexpected: kerr.CoordinatorNotAvailable,
}

// initCodes are InitProducerId's. A token that may not use the cell's keys never
// will: a retriable code would make initTransactions spin.
var initCodes = codes{
	noAnswer: kerr.CoordinatorNotAvailable, gateway: kerr.CoordinatorNotAvailable, throttled: kerr.ConcurrentTransactions,
	forbidden: kerr.TransactionalIDAuthorizationFailed, notFound: kerr.CoordinatorNotAvailable,
	tooLarge: kerr.CoordinatorNotAvailable, unexpected: kerr.CoordinatorNotAvailable,
}

// of translates a reply; store is how the API names a cell's failure.
func (o outcomes) of(r txn.Reply, store codes) outcome {
	switch r.Outcome {
	case txn.OK:
		return outcome{}
	case txn.Unavailable:
		return store.of(r.Err)
	}
	return outcome{code: o[r.Outcome].Code}
}

// fencedFrom is the code 90 for versions that know it, and 47 for those before.
func fencedFrom(first, version, code int16) int16 {
	if code == kerr.ProducerFenced.Code && version < first {
		return kerr.InvalidProducerEpoch.Code
	}
	return code
}

// caller is who asks for something in a transaction.
func (c Call) caller(id string, producer int64, epoch int16) txn.Caller {
	return txn.Caller{Scope: c.Scope, Session: c.Conn.txns, ID: id, Producer: txn.Producer{ID: producer, Epoch: epoch}}
}

// TxnOps is how many key-value operations one transaction of a credential takes.
type TxnOps interface{ TxnOps(s tenancy.Scope) int }
