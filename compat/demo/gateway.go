package demo

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/queen-mq/queen-edge/compat/ports"
	"github.com/queen-mq/queen-edge/tlsconf"
)

// Gateway is a `queen-edge serve` in a process of its own before a demo's cell,
// with TLS, SASL PLAIN and a side listener.
type Gateway struct {
	Addr string // host:port for clients
	CA   string // PEM file of the authority to trust
	PID  int

	side, bearer string
	cmd          *exec.Cmd
	exited       chan error
}

// StartGateway starts the program as a gateway before the cell at url, with more
// settings (NAME=value) than it needs, and its files in dir.
func StartGateway(program, dir, url string, settings ...string) (*Gateway, error) {
	random := make([]byte, 16)
	_, _ = rand.Read(random)
	g := &Gateway{CA: filepath.Join(dir, "gateway-ca.pem"), bearer: hex.EncodeToString(random), exited: make(chan error, 1)}
	cert, key := filepath.Join(dir, "gateway.pem"), filepath.Join(dir, "gateway.key")
	if err := g.certificate(cert, key); err != nil {
		return nil, err
	}
	side, err := ports.Keep()
	if err != nil {
		return nil, err
	}
	defer side.Close() //nolint:errcheck // the gateway listens on it then
	g.cmd = exec.Command(program, "serve", "--addr", "127.0.0.1:0")
	g.cmd.Env = append(os.Environ(), append([]string{
		"QUEEN_URL=" + url, "QUEEN_KAFKA_SASL=plain", "QUEEN_KAFKA_TLS_CERT=" + cert, "QUEEN_KAFKA_TLS_KEY=" + key,
		"QUEEN_KAFKA_ADMIN_ADDR=" + side.Addr(), "QUEEN_KAFKA_ADMIN_TOKEN=" + g.bearer,
		"QUEEN_KAFKA_DEFAULT_PARTITIONS=4", "QUEEN_KAFKA_DRAIN_GRACE_MS=1000", "LOG_LEVEL=warn",
	}, settings...)...)
	g.cmd.Stderr = os.Stderr
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	g.PID = g.cmd.Process.Pid
	lines := bufio.NewScanner(out)
	for g.Addr == "" && lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "serve: side listener on "); ok {
			g.side = "http://" + at
		}
		if at, ok := strings.CutPrefix(lines.Text(), "serve: listening on "); ok {
			g.Addr = at
		}
	}
	go g.wait(out)
	if g.Addr == "" || g.side == "" {
		return nil, errors.Join(errors.New("the gateway did not come up"), g.Stop())
	}
	return g, nil
}

// wait reads what the process still writes, and then its end.
func (g *Gateway) wait(out io.Reader) {
	_, _ = io.Copy(io.Discard, out)
	g.exited <- g.cmd.Wait()
}

// Stop ends the gateway.
func (g *Gateway) Stop() error {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(stopPatience, func() { _ = g.cmd.Process.Kill() })
	defer late.Stop()
	return <-g.exited
}

func (g *Gateway) certificate(certFile, keyFile string) error {
	ca, err := tlsconf.NewDevCA("compat")
	if err != nil {
		return err
	}
	cert, key, err := ca.Issue([]string{"127.0.0.1", "localhost"})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(g.CA, ca.CertPEM(), 0o600), os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600))
}

// Metric is one of the gateway's, by its name and labels as the page has them.
func (g *Gateway) Metric(ctx context.Context, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.side+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+g.bearer)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(v), 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}
