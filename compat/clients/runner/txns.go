package main

import (
	"context"
	"regexp"
)

// txnOffsets are what each transactional check commits for its group: no more,
// since what was aborted or fenced commits nothing.
var txnOffsets = map[int32]int64{1: 4, 2: 7}

var ofFenced = regexp.MustCompile(`(?i)fence[ds]|epoch|\b90\b`)

// judgeTransactions looks at what transactions committed besides records, which
// judgeTopic compares, and what was said, which judgeRefusals does.
func (j judge) judgeTransactions(ctx context.Context, b *block) {
	for _, check := range []string{"txn-commit", "txn-abort", "txn-fenced"} {
		if b.results[check].Verdict != "pass" {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, readTimeout)
		if err := j.fix.admin.committed(limited, b.groups[check], j.fix.groupTopic, txnOffsets); err != nil {
			b.refute(check, "%s", err.Error())
		}
		cancel()
	}
}
