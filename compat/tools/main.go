// Command tools runs Apache Kafka's command-line tools against `queen-edge demo`,
// and compares what they print with what testdata says. README.md says how.
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

// runDeadline is for everything: build, start, commands, end.
const runDeadline = 4 * time.Minute

type options struct {
	jars   string
	only   string
	update bool
}

func main() {
	var o options
	flag.StringVar(&o.jars, "jars", filepath.FromSlash("compat/diff/.cache/kafka"), "folder of the jars that `make deps-diff` installs")
	flag.StringVar(&o.only, "only", "", "run only the scenarios whose file name holds this text")
	flag.BoolVar(&o.update, "update", false, "write what is printed into the scenarios")
	flag.Parse()
	mainly.Run("tools", runDeadline, func(ctx context.Context) (bool, error) { return run(ctx, o) })
}

func run(ctx context.Context, o options) (ok bool, err error) {
	root, err := demo.ModuleRoot(ctx)
	if err != nil {
		return false, err
	}
	here := filepath.Join(root, "compat", "tools")
	files, err := filepath.Glob(filepath.Join(here, "testdata", "*.txt"))
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "queen-edge-tools-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "queen-edge")
	if err := demo.Build(ctx, root, program); err != nil {
		return false, err
	}
	java, err := startJVM(ctx, o.jars, filepath.Join(here, "Tools.java"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, java.stop()) }()

	passed, failed := 0, 0
	for _, file := range files {
		if !strings.Contains(filepath.Base(file), o.only) {
			continue
		}
		p, f, err := runFile(ctx, o, java, program, dir, file)
		if err != nil {
			return false, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		passed, failed = passed+p, failed+f
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	return failed == 0 && passed > 0, nil
}

// runFile runs a scenario against a demo of its own.
func runFile(ctx context.Context, o options, java *jvm, program, dir, file string) (passed, failed int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	s, err := parse(string(text))
	if err != nil {
		return 0, 0, err
	}
	name := strings.TrimSuffix(filepath.Base(file), ".txt")
	w, err := newWorld(ctx, java, program, filepath.Join(dir, name))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	start := time.Now()
	for i := range s.commands {
		c := &s.commands[i]
		if c.got, err = w.run(ctx, c.text); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", c.text, err)
		}
	}
	if o.update {
		if err := os.WriteFile(file, []byte(s.render()), 0o644); err != nil {
			return 0, 0, err
		}
	}
	passed, failed = s.judge(name, os.Stdout)
	fmt.Printf("tools: %s: %d passed, %d failed, %.1fs\n", name, passed, failed, time.Since(start).Seconds())
	return passed, failed, nil
}
