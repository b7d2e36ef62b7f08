package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/queen-mq/queen-edge/compat/faults/window"
)

// transactors are the clients with a transactional program. The first one's
// program is also the second member of a group.
func transactors(dir string) []client {
	list := []client{
		{name: "franz-go", dir: "franz-go"},
		{name: "java-4.4.0", dir: "java", version: "4.4.0"},
		{name: "java-3.6.2", dir: "java", version: "3.6.2"},
		{name: "confluent-kafka-python", dir: "confluent-kafka-python"},
		{name: "sarama", dir: "sarama"},
	}
	for i := range list {
		list[i].dir = filepath.Join(dir, list[i].dir)
	}
	return list
}

// transactions takes transactional programs through their trials.
func (b *bench) transactions(ctx context.Context, o *options) (failed bool, err error) {
	all := transactors(filepath.Join(b.root, "compat", "faults", "txn"))
	picked, err := b.clients(all, o.clients)
	if err != nil {
		return false, err
	}
	if err := all[0].install([]string{"COMPAT_CACHE=" + b.cache}); err != nil {
		return false, err
	}
	list, err := pickStrikes(o.faults, o.full)
	if err != nil {
		return false, err
	}
	began := time.Now()
	results := make([][]txnResult, len(picked))
	err = inParallel(len(picked), o.parallel, func(i int) (err error) {
		var trials []txnTrial
		for _, s := range list {
			trials = append(trials, txnTrial{client: picked[i], second: all[0], strike: s, rounds: o.rounds})
		}
		results[i], err = b.transactor(ctx, picked[i].name, trials)
		return err
	})
	if err != nil {
		return false, err
	}
	return printTransactions(slices.Concat(results...), time.Since(began), os.Stdout), nil
}

// transactor takes one client through its trials, on a system of its own.
func (b *bench) transactor(ctx context.Context, name string, trials []txnTrial) (results []txnResult, err error) {
	// An empty group would wait for more members in every round with a new gateway.
	s, err := b.system(name, []string{"QUEEN_KAFKA_GROUP_JOIN_DELAY_MS=0"}, func(cell window.Cell) error {
		var errs []error
		for _, t := range trials {
			errs = append(errs, cell.Make(ctx, t.names().input, txnPartitions, 900), cell.Make(ctx, t.names().output, txnPartitions, 900))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, t := range trials {
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		r := t.run(ctx, s, b.cache)
		results = append(results, r)
		r.print(&b.out)
	}
	return results, nil
}
