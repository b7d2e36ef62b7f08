// Command bench measures queen-edge beside Apache Kafka on this machine, in one
// run: README.md says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/queen-mq/queen-edge/compat/bench/load"
	"github.com/queen-mq/queen-edge/compat/bench/peer"
	"github.com/queen-mq/queen-edge/compat/bench/result"
)

// longest is how long a run may take.
const longest = 40 * time.Minute

// Files of a run, from this folder.
const (
	root        = "../.."
	resultsFile = "results.json"
	drawingFile = root + "/docs/performance.svg"
	pageFile    = root + "/docs/PERFORMANCE.md"
	jarsFolder  = root + "/compat/diff/.cache/kafka"
	cacheFolder = ".cache"
)

type options struct {
	short, page bool
	peers, only string
	rounds      int
	out         string
	profile     string
}

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "run everything once and briefly, and see that every number is there; nothing is kept")
	flag.BoolVar(&o.page, "page", false, "make the page and the drawing from results.json anew; measure nothing")
	flag.StringVar(&o.peers, "peers", "", "these peers only: names separated by commas")
	flag.StringVar(&o.only, "only", "", "these workloads only: parts of names separated by commas")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds (default 3, short 1)")
	flag.StringVar(&o.out, "out", "", "write the results to this file instead of results.json, and no page")
	flag.StringVar(&o.profile, "profile", "", "put profiles of gateway, cell and bare server, while records move and clients log in, into this folder; the figures of such a run are not kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := dispatch(ctx, o)
	stop()
	os.Exit(code)
}

func dispatch(ctx context.Context, o options) int {
	var err error
	switch flag.Arg(0) {
	case "load":
		return load.Main(ctx, os.Stdin, os.Stdout)
	case "bare":
		err = peer.ServeBare(os.Stdout, flag.Arg(1), flag.Arg(2))
	case "":
		err = bench(ctx, o)
	default:
		err = fmt.Errorf("no command %q", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

func bench(ctx context.Context, o options) error {
	if o.page {
		run, err := result.Read(resultsFile)
		if err != nil {
			return err
		}
		return publish(run)
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	c, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	if err := c.conduct(ctx); err != nil {
		if c.run != nil { // for whoever looks why
			err = errors.Join(err, c.run.Write(filepath.Join(cacheFolder, "unfinished.json")))
		}
		return err
	}
	c.run.Short = o.short
	if err := c.run.Print(os.Stdout); err != nil {
		return err
	}
	c.say("\n%d numbers of %d samples in %.1f minutes", numbers(c.run), len(c.run.Samples), c.run.Minutes)
	return keep(c.run, o)
}

// keep writes a run to where it belongs: a whole one into the project.
func keep(run *result.Run, o options) error {
	switch {
	case o.out != "":
		return run.Write(o.out)
	case o.short || o.only != "" || o.peers != "" || o.rounds != 0 || o.profile != "":
		return nil // a part says nothing
	}
	if err := run.Write(resultsFile); err != nil {
		return err
	}
	return publish(run)
}

// publish makes the page and the drawing.
func publish(run *result.Run) error {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		return err
	}
	page, err := result.Page(string(text), run)
	if err != nil {
		return err
	}
	if err := os.WriteFile(pageFile, []byte(page), 0o644); err != nil || run == nil {
		return err
	}
	return os.WriteFile(drawingFile, []byte(run.SVG()), 0o644)
}

func numbers(run *result.Run) (n int) {
	for _, s := range run.Samples {
		n += len(s.Values)
	}
	return n
}

// prepare builds what is measured and makes an empty place for it.
func prepare(ctx context.Context, o options) (*conductor, error) {
	c := &conductor{out: os.Stdout, size: full(), tls: map[string]string{}}
	if o.short {
		c.size = brief()
	}
	if o.rounds > 0 {
		c.size.rounds = o.rounds
	}
	c.steps = choose(c.size.plan(), o.only)
	c.peers = []string{peer.Queen, peer.KafkaTLS, peer.KafkaSync, peer.KafkaOpen, peer.Bare}
	if o.short {
		c.peers = []string{peer.Queen, peer.KafkaTLS, peer.Bare} // one JVM
	}
	if o.peers != "" {
		c.peers = strings.Split(o.peers, ",")
	}
	var err error
	if o.profile != "" {
		if c.profiles, err = peer.ProfileFolder(o.profile); err != nil {
			return nil, err
		}
	}
	if c.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if c.jars, err = filepath.Abs(jarsFolder); err != nil {
		return nil, err
	}
	if c.dir, err = filepath.Abs(filepath.Join(cacheFolder, "run")); err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(c.dir), os.MkdirAll(c.dir, 0o755)); err != nil {
		return nil, err
	}
	if c.id, err = peer.NewIdentity(c.dir); err != nil {
		return nil, err
	}
	c.exe = filepath.Join(c.dir, "product")
	build := exec.CommandContext(ctx, "go", "build", "-C", root, "-o", c.exe, "./cmd/queen-edge")
	build.Stdout, build.Stderr = io.Discard, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return c, build.Run()
}
