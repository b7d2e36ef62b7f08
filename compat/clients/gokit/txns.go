package gokit

import (
	"context"
	"errors"
	"fmt"
)

// Transactor is a client that has transactions.
type Transactor interface {
	// Transactional makes a producer. Making it, or its first Begin, fences those
	// of the same id.
	Transactional(ctx context.Context, token, id string) (Transactional, error)
}

// Transactional is a transactional producer.
type Transactional interface {
	Begin(ctx context.Context) error
	// Produce writes records to partition 0, in order.
	Produce(ctx context.Context, topic string, records []Record) error
	// Offsets has the transaction commit offsets of a topic for a group.
	Offsets(ctx context.Context, group, topic string, offsets map[int32]int64) error
	// End commits or aborts.
	End(ctx context.Context, commit bool) error
	Close() error
}

// txn is what a transactional check has.
type txn struct {
	id, topic, group string
	lines            []Record
}

func (b *block) txnSteps() []step {
	return []step{
		{"txn-commit", b.txnCheck(b.txnCommit)},
		{"txn-abort", b.txnCheck(b.txnAbort)},
		{"txn-fenced", b.txnCheck(b.txnFenced)},
	}
}

func (b *block) txnCheck(do func(ctx context.Context, open func() (Transactional, error), check string, t txn) error) func(context.Context, string) error {
	return func(ctx context.Context, check string) error {
		driver, ok := b.Driver.(Transactor)
		if !ok {
			return Skip("its folder does not drive transactions")
		}
		t := txn{id: b.named(check), topic: b.topic(check), group: b.group(check), lines: b.lines(check)}
		open := func() (Transactional, error) { return driver.Transactional(ctx, token("ACME"), t.id) }
		return do(ctx, open, check, t)
	}
}

// good is the transaction of each check that is to be seen.
func (t txn) good(ctx context.Context, p Transactional) error {
	if err := p.Begin(ctx); err != nil {
		return err
	}
	if err := p.Produce(ctx, t.topic, t.lines); err != nil {
		return err
	}
	if err := p.Offsets(ctx, t.group, groupTopic(), map[int32]int64{1: 4, 2: 7}); err != nil {
		return err
	}
	return p.End(ctx, true)
}

// never begins a transaction of which nothing is to be seen.
func (t txn) never(ctx context.Context, p Transactional) error {
	if err := p.Begin(ctx); err != nil {
		return err
	}
	if err := p.Produce(ctx, t.topic, []Record{{Value: []byte("never")}}); err != nil {
		return err
	}
	return p.Offsets(ctx, t.group, groupTopic(), map[int32]int64{0: 9})
}

func (b *block) txnCommit(ctx context.Context, open func() (Transactional, error), _ string, t txn) error {
	p, err := open()
	if err != nil {
		return err
	}
	return errors.Join(t.good(ctx, p), p.Close())
}

func (b *block) txnAbort(ctx context.Context, open func() (Transactional, error), _ string, t txn) error {
	p, err := open()
	if err != nil {
		return err
	}
	if err = t.never(ctx, p); err == nil {
		err = p.End(ctx, false)
	}
	if err == nil {
		err = t.good(ctx, p)
	}
	return errors.Join(err, p.Close())
}

func (b *block) txnFenced(ctx context.Context, open func() (Transactional, error), check string, t txn) error {
	first, err := open()
	if err != nil {
		return err
	}
	defer first.Close() //nolint:errcheck // it is fenced
	if err := t.never(ctx, first); err != nil {
		return err
	}
	second, err := open()
	if err != nil {
		return err
	}
	if err := errors.Join(t.good(ctx, second), second.Close()); err != nil {
		return err
	}
	atRecords := first.Produce(ctx, t.topic, []Record{{Value: []byte("never, by a fenced one")}})
	atCommit := first.End(ctx, true)
	if atCommit == nil {
		return errors.New("a fenced producer commits")
	}
	fmt.Fprintf(b.out, "said %s records: %s; commit: %s\n", check, oneLine(fmt.Sprint(atRecords)), oneLine(atCommit.Error()))
	return nil
}
