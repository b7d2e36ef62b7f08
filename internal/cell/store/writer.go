package store

import (
	"github.com/cockroachdb/pebble/v2"
)

const (
	// maxGroup and maxGroupBytes bound what one sync answers for.
	maxGroup      = 1024
	maxGroupBytes = 32 << 20
	// keepMetaBytes is how much room for metas is kept for the next group.
	keepMetaBytes = 1 << 20
)

// Command is one write.
type Command struct {
	// Plan fills in the entry, given everything planned before. An error
	// refuses the command and must leave the machine as it was. A draft left
	// empty writes nothing; the command is answered when everything planned
	// before it is durable.
	Plan func(*Draft) error
	// Bytes is about how large the entry will be.
	Bytes int64
	// Frees marks a command that makes space; half of the reserve is open to
	// it.
	Frees bool

	done chan error
}

// Draft is the entry a command asks for.
type Draft struct {
	Meta  []byte // to be appended to
	Blobs []Blob
	// Index changes rows without an entry. It must be repeatable: a crash may
	// undo it.
	Index func(*Batch) error
}

// group is what the writer does at once.
type group struct {
	commands []*Command
	bytes    int64
	frees    int64 // part of bytes that commands which free space have

	answered []*Command // planned, to be answered when the group is durable
	steps    []step
	meta     []byte // of all drafts; steps hold positions, it may move
	draft    Draft
	batch    Batch
}

// step is one planned command: an entry, or a change of rows only.
type step struct {
	entry    Entry
	from, to int // its meta
	index    func(*Batch) error
}

func (g *group) init(db *pebble.DB) {
	g.batch = Batch{rows: db.NewBatch(), live: make(map[uint64]int64)}
}

func (g *group) add(c *Command) {
	g.commands = append(g.commands, c)
	g.bytes += c.Bytes + entryHeader
	if c.Frees {
		g.frees += c.Bytes + entryHeader
	}
}

func (g *group) reset() {
	clear(g.commands)
	clear(g.answered)
	g.commands, g.answered, g.steps = g.commands[:0], g.answered[:0], g.steps[:0]
	g.bytes, g.frees = 0, 0
	if g.meta = g.meta[:0]; cap(g.meta) > keepMetaBytes {
		g.meta = nil
	}
	clear(g.batch.live)
}

// write is the writer goroutine: it alone touches the end of the log.
func (s *Store) write() {
	defer close(s.written)
	for {
		select {
		case c := <-s.commands:
			s.gather(c)
			s.writeGroup()
		case <-s.stop:
			s.writeLast()
			return
		}
	}
}

// writeLast serves the commands that were handed over before Close.
func (s *Store) writeLast() {
	for {
		select {
		case c := <-s.commands:
			s.gather(c)
			s.writeGroup()
		default:
			return
		}
	}
}

// gather takes first and whatever else waits.
func (s *Store) gather(first *Command) {
	g := &s.group
	g.add(first)
	for len(g.commands) < maxGroup && g.bytes < maxGroupBytes {
		select {
		case c := <-s.commands:
			g.add(c)
		default:
			return
		}
	}
}

// writeGroup carries a group from its plans to its answers.
func (s *Store) writeGroup() {
	g := &s.group
	defer g.reset()
	err := s.planGroup()
	if err == nil {
		err = s.syncGroup()
	}
	if err == nil {
		err = s.applyGroup()
	}
	if err != nil {
		err = s.fail(err)
	}
	for _, c := range g.answered {
		c.done <- err
	}
}

// planGroup plans every command and writes its entry. After a failure the
// rest is refused: their plans would build on what is not there.
func (s *Store) planGroup() error {
	g := &s.group
	if err := s.failure(); err != nil {
		g.answered = append(g.answered, g.commands...)
		return err
	}
	full, fullForAll := s.full()
	for i, c := range g.commands {
		if fullForAll || full && !c.Frees {
			c.done <- ErrFull
			continue
		}
		g.draft = Draft{Meta: g.meta[len(g.meta):], Blobs: g.draft.Blobs[:0]}
		if err := c.Plan(&g.draft); err != nil {
			c.done <- err
			continue
		}
		g.answered = append(g.answered, c)
		if err := s.writeDraft(); err != nil {
			g.answered = append(g.answered, g.commands[i+1:]...)
			return err
		}
	}
	return nil
}

func (s *Store) writeDraft() error {
	g, d := &s.group, &s.group.draft
	if d.Index != nil {
		g.steps = append(g.steps, step{index: d.Index})
		return nil
	}
	if len(d.Meta) == 0 {
		return nil
	}
	var sizes []blobSize
	if n := len(g.steps); n < cap(g.steps) {
		sizes = g.steps[:n+1][n].entry.sizes[:0] // of an earlier group
	}
	e, err := s.log.append(d.Meta, d.Blobs, sizes)
	from := len(g.meta)
	g.meta = append(g.meta, d.Meta...)
	g.steps = append(g.steps, step{entry: e, from: from, to: len(g.meta)})
	clear(d.Blobs)
	return err
}

func (s *Store) syncGroup() error {
	if !s.log.dirty {
		return nil
	}
	s.syncs.Add(1)
	return s.log.sync()
}

// applyGroup brings the durable entries to the index and into view.
func (s *Store) applyGroup() error {
	g := &s.group
	if len(g.steps) == 0 {
		return nil
	}
	g.batch.rows.Reset()
	at, bytes := s.atSeen, int64(0)
	for i := range g.steps {
		if index := g.steps[i].index; index != nil {
			if err := index(&g.batch); err != nil {
				return err
			}
			continue
		}
		e := &g.steps[i].entry
		e.Meta = g.meta[g.steps[i].from:g.steps[i].to]
		if err := s.machine.Apply(e, &g.batch); err != nil {
			return err
		}
		at = position{seq: e.Seq, segment: e.segment, pos: e.end()}
		bytes += e.end() - e.pos
	}
	if err := s.commit(&g.batch, at); err != nil {
		return err
	}
	s.atSeen = at
	s.machine.Publish()
	dead, sparse := s.log.charge(g.batch.live)
	if dead || s.unflushed.Add(bytes) > flushEvery {
		s.wake(s.kick)
	}
	if sparse {
		s.wake(s.sparse)
	}
	return nil
}

// full says whether the free space is too little for the group: for those that
// need space, and for those that make some.
func (s *Store) full() (full, fullForAll bool) {
	usage, err := s.cfg.FS.GetDiskUsage(s.cfg.Dir)
	if err != nil {
		return false, false // a file system without an end, or one that hides it
	}
	g := &s.group
	avail := int64(min(usage.AvailBytes, 1<<62))
	return avail < s.cfg.ReserveBytes+s.newFileBytes(g.bytes), avail < s.cfg.ReserveBytes/2+s.newFileBytes(g.frees)
}

// newFileBytes is the size of the file that an append of n bytes would make.
func (s *Store) newFileBytes(n int64) int64 {
	if s.log.room(n) {
		return 0
	}
	return max(s.cfg.SegmentBytes, segmentHeader+n)
}
