// Command runner lets every client of compat/clients go through the shared list
// of checks against `queen-edge demo`, and judges what they wrote and read with
// an implementation of its own. README.md one folder up says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/compat/demo"
	"github.com/queen-mq/queen-edge/compat/mainly"
)

const (
	runDeadline  = 4 * time.Minute  // of one client, all its versions together
	depsDeadline = 10 * time.Minute // of one client's installation
)

type options struct {
	only     string
	slow     bool
	deps     bool
	jsonFile string
	deadline time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "run these clients only (names separated by commas), slow or not")
	flag.BoolVar(&o.slow, "slow", false, "run the slow clients as well")
	flag.BoolVar(&o.deps, "deps", false, "install what the clients need, and run none")
	flag.StringVar(&o.jsonFile, "json", "", "write all results to this file")
	flag.DurationVar(&o.deadline, "deadline", runDeadline, "of one client")
	flag.Parse()
	mainly.Run("compat", 0, func(ctx context.Context) (bool, error) {
		failed, err := run(ctx, o)
		return !failed, err
	})
}

func run(ctx context.Context, o options) (failed bool, err error) {
	root, err := demo.ModuleRoot(ctx)
	if err != nil {
		return false, err
	}
	p := places{root: root, clients: filepath.Join(root, "compat", "clients")}
	p.cache = filepath.Join(p.clients, ".cache")
	if err := os.MkdirAll(filepath.Join(p.cache, "logs"), 0o755); err != nil {
		return false, err
	}
	clients, err := p.list(o)
	if err != nil {
		return false, err
	}
	if o.deps {
		return p.installAll(ctx, clients), nil
	}
	return p.runAll(ctx, o, clients)
}

// places are the folders of a run.
type places struct {
	root    string // of the module
	clients string
	cache   string
}

// list finds the clients: the folders that have a run.
func (p places) list(o options) ([]string, error) {
	runs, err := filepath.Glob(filepath.Join(p.clients, "*", "run"))
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(o.only, ",") {
		if name != "" {
			wanted[name] = true
		}
	}
	var names []string
	for _, path := range runs {
		name := filepath.Base(filepath.Dir(path))
		_, err := os.Stat(filepath.Join(p.clients, name, "slow"))
		slow := err == nil
		if o.only == "" && (!slow || o.slow) || wanted[name] {
			names = append(names, name)
		}
		delete(wanted, name)
	}
	for name := range wanted {
		return nil, fmt.Errorf("there is no client %q", name)
	}
	if len(names) == 0 {
		return nil, errors.New("there is no client to run")
	}
	return names, nil
}

// installAll runs every client's deps, and goes on after one that fails.
func (p places) installAll(ctx context.Context, clients []string) (failed bool) {
	for _, name := range clients {
		if _, err := os.Stat(filepath.Join(p.clients, name, "deps")); err != nil {
			continue
		}
		start := time.Now()
		err := p.execute(ctx, name, script{file: "deps", deadline: depsDeadline, stdout: os.Stderr, stderr: os.Stderr})
		switch {
		case err != nil:
			failed = true
			fmt.Printf("deps: %s: %v\n", name, err)
		default:
			fmt.Printf("deps: %s: ok, %ds\n", name, int(time.Since(start).Seconds()))
		}
	}
	return failed
}

func (p places) runAll(ctx context.Context, o options, clients []string) (failed bool, err error) {
	checks, err := readChecks(filepath.Join(p.clients, "checks.txt"))
	if err != nil {
		return false, err
	}
	set, err := readDataset(filepath.Join(p.clients, "dataset.tsv"))
	if err != nil {
		return false, err
	}
	d, end, err := p.startDemo(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, end()) }()
	fix, err := makeFixtures(ctx, d, set)
	if err != nil {
		return false, err
	}
	defer fix.admin.close()
	var all []*block
	for _, name := range clients {
		blocks, err := p.runClient(ctx, o, d, fix, name)
		if err != nil {
			return false, err
		}
		j := judge{demo: d, fix: fix, set: set, checks: checks}
		for _, b := range blocks {
			j.block(ctx, b)
			b.print(checks, os.Stdout, os.Stderr)
		}
		all = append(all, blocks...)
		if err := d.Alive(); err != nil {
			return false, err
		}
	}
	if o.jsonFile != "" {
		if err := writeJSON(o.jsonFile, all); err != nil {
			return false, err
		}
	}
	return printTotal(all, os.Stdout), nil
}

// runClient runs one client and reads what it reports. Its stderr is kept in a
// file.
func (p places) runClient(ctx context.Context, o options, d *demo.Demo, fix *fixtures, name string) ([]*block, error) {
	logFile := filepath.Join(p.cache, "logs", name+".log")
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var out strings.Builder
	start := time.Now()
	ended := p.execute(ctx, name, script{
		file: "run", deadline: o.deadline, stdout: &out, stderr: log,
		env: append(d.Environ(), fix.environ(p)...),
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	blocks := parseReport(name, out.String())
	for _, b := range blocks {
		b.start, b.end, b.log = start, time.Now(), logFile
	}
	if ended != nil {
		last := blocks[len(blocks)-1]
		last.problems = append(last.problems, "run: "+ended.Error())
	}
	return blocks, nil
}
