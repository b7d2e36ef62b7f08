package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/queen-mq/queen-edge/compat/demo"
	"github.com/queen-mq/queen-edge/compat/faults/window"
)

// bench is where trials run: the program under test, and folders.
type bench struct {
	root, cache, exe string
	dir              string // logs and data
	keep             bool
	out              lines
}

// prepare builds the program under test. Without a folder there will be a
// temporary one.
func prepare(ctx context.Context, dir string) (*bench, error) {
	root, err := demo.ModuleRoot(ctx)
	if err != nil {
		return nil, err
	}
	b := &bench{root: root, cache: filepath.Join(root, "compat", "clients", ".cache"), dir: dir, keep: dir != ""}
	if !b.keep {
		if b.dir, err = os.MkdirTemp("", "queen-edge-faults-"); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return nil, err
	}
	b.exe = filepath.Join(b.dir, "queen-edge")
	if err := demo.Build(ctx, root, b.exe); err != nil {
		return nil, errors.Join(err, b.close(false))
	}
	return b, nil
}

// close removes a temporary folder, unless it is wanted.
func (b *bench) close(wanted bool) error {
	if wanted {
		fmt.Println("faults: logs and data are in", b.dir)
	}
	if wanted || b.keep {
		return nil
	}
	return os.RemoveAll(b.dir)
}

// clients installs those that are named, separated by commas; all for "".
func (b *bench) clients(all []client, names string) ([]client, error) {
	picked, err := pickClients(all, names)
	if err != nil {
		return nil, err
	}
	for _, c := range picked {
		if err := c.install([]string{"COMPAT_CACHE=" + b.cache}); err != nil {
			return nil, err
		}
	}
	return picked, nil
}

// system starts a system in a folder of its own. env is for its gateways.
func (b *bench) system(name string, env []string, topics func(window.Cell) error) (*system, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return startSystem(b.exe, dir, env, topics)
}

// inParallel does n things, so many of them at a time.
func inParallel(n, most int, do func(i int) error) error {
	errs := make([]error, n)
	places := make(chan struct{}, most)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			errs[i] = do(i)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// lines is stdout, where what several say at a time stays whole.
type lines struct{ mu sync.Mutex }

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return os.Stdout.Write(line)
}

func pickClients(all []client, names string) ([]client, error) {
	if names == "" {
		return all, nil
	}
	var picked []client
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(c client) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no client %q", name)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}
