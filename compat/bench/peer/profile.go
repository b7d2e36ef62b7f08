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
	// gateway its processor time, what it allocates (before and after), and where
	// its goroutines wait (a trace); for the cell what perf saw.
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
	err := q.profile(ctx, "allocs", prefix+".gateway.allocs-before")
	cell := q.record(ctx, prefix+".cell.perf")
	err = errors.Join(err, q.profile(ctx, "profile?seconds="+strconv.Itoa(profileCPU), prefix+".gateway.cpu"))
	err = errors.Join(err, q.profile(ctx, fmt.Sprintf("trace?seconds=%g", profileTrace), prefix+".gateway.trace"))
	err = errors.Join(err, q.profile(ctx, "allocs", prefix+".gateway.allocs-after"))
	return errors.Join(err, <-cell)
}

// profile keeps one of the gateway's profiles.
func (q *queen) profile(ctx context.Context, what, file string) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+q.side+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+q.at.Identity.Password)
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
