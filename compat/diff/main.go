// Command diff sends the same raw requests to queen-edge and to a real Apache
// Kafka, and compares the answers field by field. README.md says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/queen-mq/queen-edge/compat/mainly"
)

// runDeadline is for everything: start, requests, end.
const runDeadline = 220 * time.Second

type options struct {
	jars    string
	docs    string
	only    string
	verbose bool
}

func main() {
	var o options
	flag.StringVar(&o.jars, "jars", filepath.FromSlash("compat/diff/.cache/kafka"), "folder of the jars that `make deps-diff` installs")
	flag.StringVar(&o.docs, "docs", filepath.FromSlash("docs/DEVIATIONS.md"), "the page that gives the reason of each listed difference")
	flag.StringVar(&o.only, "only", "", "run only scripts whose name holds this text; unused rules do not fail then")
	flag.BoolVar(&o.verbose, "v", false, "print every difference, the listed ones too")
	flag.Parse()
	mainly.Run("diff", runDeadline, func(ctx context.Context) (bool, error) { return run(ctx, o) })
}

func run(ctx context.Context, o options) (ok bool, err error) {
	docs, err := os.ReadFile(o.docs)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "queen-edge-diff-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	began := time.Now()
	theirs, err := startKafka(ctx, o.jars, filepath.Join(dir, "kafka"))
	if err != nil {
		return false, err
	}
	defer theirs.stop()
	ours, err := startGateway(filepath.Join(dir, "cell"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()
	if err := theirs.ready(ctx); err != nil {
		return false, err
	}
	fmt.Printf("diff: Apache Kafka %s beside queen-edge, started in %.1fs\n", theirs.version, time.Since(began).Seconds())

	began = time.Now()
	j := newJudge(string(docs))
	p := pair{ours: ours.side(), theirs: theirs.side()}
	if err := p.runAll(ctx, o.only, j); err != nil {
		return false, err
	}
	fmt.Printf("diff: compared in %.1fs\n", time.Since(began).Seconds())
	return j.report(os.Stdout, o), nil
}
