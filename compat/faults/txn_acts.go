package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/faults/history"
)

// rebalance lets a second program join the group, and comes back once the group
// waits for the first one to join again.
func (t *transacting) rebalance() error {
	name := fmt.Sprintf("%s-other-%d", t.names.id, len(t.others))
	other, err := startWorker(t.second.dir, filepath.Join(t.s.dir, name+".log"), name, t.env())
	if err != nil {
		return err
	}
	t.others = append(t.others, other)
	return t.eventually("a rebalance", func(ctx context.Context, adm *kadm.Client) (bool, error) {
		groups, err := adm.DescribeGroups(ctx, t.names.group)
		return groups[t.names.group].State != "Stable", err
	})
}

// settle ends the second program: what it had goes back to the first one.
func (t *transacting) settle() error {
	other := t.others[len(t.others)-1]
	err := other.await("producer", func(w *worker) bool { return w.lives() > 0 }, roundPatience)
	return errors.Join(err, t.output(t.fed), other.finish(quiet))
}

// outlive comes back once the transaction has run out of time.
func (t *transacting) outlive() error {
	return t.eventually("the end of the transaction's time", func(ctx context.Context, adm *kadm.Client) (bool, error) {
		txns, err := adm.DescribeTransactions(ctx, t.names.id)
		return txns[t.names.id].State == "PrepareAbort", err
	})
}

// eventually asks the clients' gateway until something is so.
func (t *transacting) eventually(what string, so func(context.Context, *kadm.Client) (bool, error)) error {
	c, err := t.s.kafka(t.s.current)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.ctx, roundPatience)
	defer cancel()
	adm, ticks := kadm.NewClient(c), time.NewTicker(50*time.Millisecond)
	defer ticks.Stop()
	for {
		ok, err := so(ctx, adm)
		if ok && err == nil {
			return nil
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(context.Cause(ctx), err))
		}
	}
}

// usurper is a producer that takes the program's transactional id, and then loses
// it again to the program's next producer: a zombie.
type usurper struct {
	c     *kgo.Client
	life  int
	id    int64
	epoch int16
}

// firstUsurper is the life of the first one: programs count from 1.
const firstUsurper = 1001

// usurp takes the transactional id while the program's commit is on its way, and
// stages a record of its own. The program cannot bump its way back.
func (t *transacting) usurp() error {
	c, err := t.s.kafka(t.s.current, kgo.TransactionalID(t.names.id), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	u := &usurper{c: c, life: firstUsurper + len(t.usurpers)}
	t.usurpers = append(t.usurpers, u)
	began := time.Now()
	if u.id, u.epoch, err = c.ProducerID(t.ctx); err != nil {
		return err
	}
	t.history.Init(onlooker, history.Span{Call: began, Return: time.Now()}, history.Producer{ID: t.names.id, Life: u.life}, true)
	if err := wantFenced("the program's bump", u.bump(t.ctx, t.names.id, u.epoch-1)); err != nil {
		return err
	}
	if err := c.BeginTransaction(); err != nil {
		return err
	}
	return c.ProduceSync(t.ctx, &kgo.Record{Topic: t.names.output, Value: []byte("zombie")}).FirstErr()
}

// fence waits for the program's next producer, and lets the zombie do what it
// can: nothing.
func (t *transacting) fence() error {
	u := t.usurpers[len(t.usurpers)-1]
	defer u.c.Close()
	want := len(t.usurpers) + 1
	if err := t.w.await("new producer", func(w *worker) bool { return w.lives() >= want }, roundPatience); err != nil {
		return err
	}
	began := time.Now()
	err := u.c.EndTransaction(t.ctx, kgo.TryCommit)
	t.history.Txn(onlooker, history.Span{Call: began, Return: time.Now()}, history.Txn{
		Producer: history.Producer{ID: t.names.id, Life: u.life}, Outcome: history.Fenced, Writes: map[int32][]int{0: {-1}},
	})
	return errors.Join(wantFenced("the zombie's commit", err), wantFenced("the zombie's bump", u.bump(t.ctx, t.names.id, u.epoch)))
}

// bump asks for the next epoch of a producer (KIP-360).
func (u *usurper) bump(ctx context.Context, id string, epoch int16) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &id, int32(shortTimeout.Milliseconds())
	req.ProducerID, req.ProducerEpoch = u.id, epoch
	resp, err := req.RequestWith(ctx, u.c)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

func wantFenced(what string, err error) error {
	if !errors.Is(err, kerr.ProducerFenced) {
		return fmt.Errorf("%s: %v, want %v", what, err, kerr.ProducerFenced)
	}
	return nil
}
