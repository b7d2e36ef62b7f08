package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Parts of a measured part that a profile takes, in seconds: together less than
// the shortest of them.
const (
	profileCPU   = 2
	profileTrace = 0.25
)

// Profiled is a peer whose profiles can be taken while it works.
type Profiled interface {
	// Profile writes them into files whose names begin with prefix: for the
	// gateway, and for the bare server, processor time, what is allocated (before
	// and after), and where goroutines wait (a trace); for the cell what perf saw.
	Profile(ctx context.Context, prefix string) error
}

// profileEnv opens the gateway's profiles.
func profileEnv(port int, token string) []string {
	return []string{
		fmt.Sprintf("QUEEN_KAFKA_ADMIN_ADDR=127.0.0.1:%d", port), "QUEEN_KAFKA_ADMIN_TOKEN=" + token, "QUEEN_KAFKA_ADMIN_PPROF=true",
	}
}

// Profile implements Profiled.
func (q *queen) Profile(ctx context.Context, prefix string) error {
	if q.side == "" {
		return errors.New("the gateway was started without its profiles")
	}
	cell := q.record(ctx, prefix+".cell.perf")
	err := profiles(ctx, q.side, q.at.Identity.Password, prefix+".gateway")
	return errors.Join(err, <-cell)
}

// Profile implements Profiled, for what a login is held against.
func (b *bare) Profile(ctx context.Context, prefix string) error {
	return profiles(ctx, b.side, "", prefix+".bare")
}

// profiles keeps all that a process has at its side.
func profiles(ctx context.Context, side, token, prefix string) error {
	err := profile(ctx, side, token, "allocs", prefix+".allocs-before")
	err = errors.Join(err, profile(ctx, side, token, "profile?seconds="+strconv.Itoa(profileCPU), prefix+".cpu"))
	err = errors.Join(err, profile(ctx, side, token, fmt.Sprintf("trace?seconds=%g", profileTrace), prefix+".trace"))
	return errors.Join(err, profile(ctx, side, token, "allocs", prefix+".allocs-after"))
}

// profile keeps one of them.
func profile(ctx context.Context, side, token, what, file string) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+side+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile %s: %s", what, resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}

// record lets perf look at the cell, which has no profiles of its own.
func (q *queen) record(ctx context.Context, file string) <-chan error {
	done := make(chan error, 1)
	cmd := exec.CommandContext(ctx, "perf", "record", "-q", "-F", "499", "-g", "-o", file,
		"-p", strconv.Itoa(q.cell.PID()), "--", "sleep", strconv.Itoa(profileCPU))
	go func() {
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("perf: %w: %s", err, out)
		}
		done <- err
	}()
	return done
}

// ProfileFolder makes the folder that profiles go to.
func ProfileFolder(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return abs, os.MkdirAll(abs, 0o755)
}
