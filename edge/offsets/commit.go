package offsets

import (
	"context"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/proxyclient"
	"github.com/queen-mq/queen-edge/tenancy"
)

// Commit stores the offsets of one request and returns how many of them, from
// the first on, are stored; err is what happened to the others. It waits for
// what other requests of the group have begun before. A place that is there
// twice is stored as its last entry says.
//
// Every place must fit (Fits). generation is the member's, for whoever looks at
// the fence; it decides nothing. protocolType is asked when the group has to be
// put into the index; nil is a consumer that is no member of it.
func (st *Store) Commit(ctx context.Context, s tenancy.Scope, group string, generation int32, protocolType func() string, entries []Entry) (written int, err error) {
	if len(entries) == 0 {
		return 0, nil
	}
	if c := st.cfg.Waiting; c != nil {
		n := int64(len(entries))
		if !c.Take(s, n) {
			return 0, ErrFull
		}
		defer c.Give(s, n)
	}
	j := &job{generation: generation, protocolType: protocolType, entries: entries, bytes: bytesOf(group, entries)}
	start := st.cfg.Clock()
	st.run(ctx, s, group, j)
	st.cfg.Committed(st.cfg.Clock().Sub(start), j.err)
	return j.written, j.err
}

// alone runs work with no commit of the group under way.
func (st *Store) alone(ctx context.Context, s tenancy.Scope, group string, work func(context.Context) error) error {
	j := &job{work: work}
	st.run(ctx, s, group, j)
	return j.err
}

// run waits for a job's turn, or for whoever does it together with another's.
// Nothing runs on behalf of a group in which nobody waits.
func (st *Store) run(ctx context.Context, s tenancy.Scope, group string, j *job) {
	j.scope, j.by, j.group = s, s.Credential(), group
	j.turn, j.done = make(chan []*job, 1), make(chan struct{})
	k := tenancy.KeyOf(s, group)
	l := st.enter(k)
	defer st.leave(k, l)
	if l.join(j) {
		st.do(ctx, l, []*job{j})
		return
	}
	wait, cancel := context.WithTimeout(ctx, st.cfg.Patience)
	defer cancel()
	select {
	case batch := <-j.turn:
		st.do(ctx, l, batch)
		return
	case <-j.done:
		return
	case <-wait.Done():
	}
	if l.withdraw(j) {
		j.err = wait.Err()
		return
	}
	// It has been taken: its outcome is near, and others may count on it.
	select {
	case batch := <-j.turn:
		st.do(ctx, l, batch)
	case <-j.done:
	}
}

// do does what has its turn, and passes the turn on whatever happens. A client
// that leaves takes nobody's commit with it; the time is bounded instead.
func (st *Store) do(ctx context.Context, l *line, batch []*job) {
	defer l.pass()
	defer settle(batch)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), st.cfg.Patience)
	defer cancel()
	if head := batch[0]; head.work != nil {
		head.settle(0, head.work(ctx))
		return
	}
	st.write(ctx, batch)
	st.list(ctx, batch)
}

func (j *job) settle(written int, err error) {
	j.written, j.err, j.settled = written, err, true
}

// settle tells those who wait. What a panic has left undone is not stored as far
// as anybody knows.
func settle(batch []*job) {
	for _, j := range batch {
		if !j.settled {
			j.settle(0, errAbandoned)
		}
		close(j.done)
	}
}

// write stores the entries of a batch. One that the cell refuses for what is in
// it is sent again commit by commit, so that nobody pays for another's.
func (st *Store) write(ctx context.Context, batch []*job) {
	if len(batch) == 1 {
		batch[0].settle(st.writeAll(ctx, batch[0]))
		return
	}
	err := st.put(ctx, batch[0], merge(batch))
	if err != nil && refusesContent(err) {
		for _, j := range batch {
			j.settle(st.writeAll(ctx, j))
		}
		return
	}
	for _, j := range batch {
		if err != nil {
			j.settle(0, err)
			continue
		}
		j.settle(len(j.entries), nil)
	}
}

// writeAll stores one commit, in as many calls as it takes. After a call that
// fails no other is made: what hindered it hinders the next as well.
func (st *Store) writeAll(ctx context.Context, j *job) (written int, err error) {
	for written < len(j.entries) {
		n := chunk(j.group, j.entries[written:], st.writes())
		if err := st.put(ctx, j, last(j.entries[written:written+n])); err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// put makes one call.
func (st *Store) put(ctx context.Context, by *job, entries []*Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := st.cfg.Clock()
	ops := make([]proxyclient.KVOp, len(entries))
	for i, e := range entries {
		ops[i] = Put(by.group, e, now)
	}
	res, err := st.fenced(ctx, by.scope, by.group, by.generation, ops)
	if err != nil {
		return err
	}
	for i := range res {
		if !res[i].Applied {
			return errNotApplied
		}
	}
	return nil
}

// refusesContent reports a call that the cell did not take for what was in it.
func refusesContent(err error) bool {
	e, ok := proxyclient.AsError(err)
	return ok && e.Kind == proxyclient.KindStatus && (e.Status == 400 || e.Status == 413)
}

// merge is what a batch writes: for each place what arrived last.
func merge(batch []*job) []*Entry {
	var all []*Entry
	at := make(map[Place]int)
	for _, j := range batch {
		all = lay(all, at, j.entries)
	}
	return all
}

// last is what a list of entries writes: a call may write a key once.
func last(entries []Entry) []*Entry {
	return lay(make([]*Entry, 0, len(entries)), make(map[Place]int, len(entries)), entries)
}

// lay lays entries over those of all; at says where each place is.
func lay(all []*Entry, at map[Place]int, entries []Entry) []*Entry {
	for i := range entries {
		e := &entries[i]
		if k, ok := at[e.Place]; ok {
			all[k] = e
			continue
		}
		at[e.Place] = len(all)
		all = append(all, e)
	}
	return all
}

// chunk is how many of the entries one call takes, one at least.
func chunk(group string, entries []Entry, most int) int {
	bytes := 0
	for i := range entries {
		if i == most {
			return i
		}
		if bytes += entryBytes(group, &entries[i]); bytes > maxWriteBytes && i > 0 {
			return i
		}
	}
	return len(entries)
}

// writeBytes is what an operation takes beside its texts.
const writeBytes = 200

// entryBytes is what an entry takes in a call, at most: a byte of metadata may
// need six in JSON.
func entryBytes(group string, e *Entry) int {
	return writeBytes + escapedLen(group) + escapedLen(e.Topic) + 6*(len(e.Metadata)+len(e.QueueID))
}

func bytesOf(group string, entries []Entry) int {
	n := 0
	for i := range entries {
		n += entryBytes(group, &entries[i])
	}
	return n
}

// list puts the group into the index after its first commit, and again after the
// first of a member where only others had committed. That it fails does not fail
// the commits; the next one tries again.
func (st *Store) list(ctx context.Context, batch []*job) {
	head, stored := batch[0], false
	var protocolType func() string
	for _, j := range batch {
		if j.written == 0 {
			continue
		}
		stored = true
		if j.protocolType != nil {
			protocolType = j.protocolType
		}
	}
	k := tenancy.KeyOf(head.scope, head.group)
	known, ok := st.indexed.Get(k)
	if !stored || ok && (known != "" || protocolType == nil) {
		return
	}
	of := ""
	if protocolType != nil {
		of = protocolType()
	}
	if ok && of == known {
		return
	}
	res, err := st.ask(ctx, head.scope, []proxyclient.KVOp{IndexPut(head.group, of, st.cfg.Clock())})
	if err == nil && !res[0].Applied {
		err = errNotApplied
	}
	if err != nil {
		st.cfg.Log.Warn("a group is not in the index of groups yet", zap.Stringer("tenant", head.scope.ID()), zap.Error(err))
		return
	}
	st.indexed.Set(k, of)
}
