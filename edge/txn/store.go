package txn

import (
	"context"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Store keeps the rows and writes what is committed. An error says that the
// outcome is not known: a write may have happened.
type Store interface {
	// Read gives the row of a transactional id; version 0 is none.
	Read(ctx context.Context, s tenancy.Scope, id string) (value []byte, version int64, err error)
	// Write puts the row where its version is still expect (0: there is none),
	// and with it all of the bundle, or nothing of either.
	Write(ctx context.Context, s tenancy.Scope, id string, value []byte, expect int64, b Bundle) (Written, error)
}

// Bundle is what a commit writes beside the row.
type Bundle struct {
	Chunks []Chunk
	Puts   []Put
}

// Put is a row of groups and offsets.
type Put struct {
	Key      string
	Value    []byte
	IfAbsent bool // a row that is there stays as it is
}

// Written is a write's verdict.
type Written struct {
	Applied bool
	Version int64  // its own, or the winner's; 0: the verdict does not say
	Value   []byte // the winner's
}

// bundle is what the stage's commit writes: each group that has offsets, and
// them.
func (s *Stage) bundle() Bundle {
	b := Bundle{Chunks: s.Chunks}
	for i := range s.Groups {
		if s.Groups[i].Staged {
			b.Puts = append(b.Puts, s.Groups[i].Index)
		}
	}
	for i := range s.Offsets {
		b.Puts = append(b.Puts, s.Offsets[i].Row)
	}
	return b
}
