package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/queen-mq/queen-edge/compat/bench/load"
)

const (
	cellFolder  = "cell" // inside the peer's folder
	clusterName = "bench"
	adminWait   = 30 * time.Second
)

// queenEnv is what differs from the defaults.
func queenEnv(at Place) []string {
	return []string{
		"QUEEN_KAFKA_SASL=plain", "QUEEN_KAFKA_TLS_CERT=" + at.Identity.Chain, "QUEEN_KAFKA_TLS_KEY=" + at.Identity.Key,
		"QUEEN_KAFKA_MAX_CONNECTIONS=16384", "LOG_LEVEL=warn",
	}
}

// queenSettings are for the report.
func queenSettings() []string {
	return []string{
		"gateway and embedded cell: two processes, HTTP over loopback, GOGC and GOMAXPROCS as Go has them",
		"QUEEN_KAFKA_SASL=plain, TLS, QUEEN_KAFKA_MAX_CONNECTIONS=16384, LOG_LEVEL=warn; otherwise the defaults",
		"cell: plan local (no quotas); every acknowledged record is synced",
	}
}

// queen is a gateway and an embedded cell.
type queen struct {
	at            Place
	cell, gateway *Process
	token, addr   string
	side          string // address of the gateway's profiles, if they are to be taken
	admin         *http.Client
}

func startQueen(ctx context.Context, at Place) (p *queen, err error) {
	q := &queen{at: at}
	defer func() {
		if err != nil {
			q.Stop()
			p = nil
		}
	}()
	// A relative folder: the path of its socket stays short.
	if q.cell, err = Start(ctx, Command{
		Name: "cell", Dir: at.Dir, Log: filepath.Join(at.Dir, "cell.log"),
		Args: []string{at.Exe, "cell", "--data", cellFolder, "--addr", "127.0.0.1:0", "--bootstrap", clusterName},
	}); err != nil {
		return nil, err
	}
	if q.token, err = q.cell.Line(ctx, "cell: its key, shown this once: "); err != nil {
		return nil, err
	}
	url, err := q.cell.Line(ctx, "cell: listening on ")
	if err != nil {
		return nil, err
	}
	q.admin = &http.Client{Timeout: adminWait, Transport: &http.Transport{DialContext: q.dialAdmin}}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	q.addr = fmt.Sprintf("%s:%d", host, port)
	env := append(queenEnv(at), "QUEEN_URL="+url, fmt.Sprintf("QUEEN_KAFKA_ADDR=127.0.0.1:%d", port), "QUEEN_KAFKA_ADVERTISED_ADDR="+q.addr)
	if at.Profiles {
		side, err := freePort()
		if err != nil {
			return nil, err
		}
		q.side = fmt.Sprintf("127.0.0.1:%d", side)
		env = append(env, profileEnv(side, at.Identity.Password)...)
	}
	if q.gateway, err = Start(ctx, Command{
		Name: "gateway", Dir: at.Dir, Log: filepath.Join(at.Dir, "gateway.log"), Env: env, Args: []string{at.Exe, "serve"},
	}); err != nil {
		return nil, err
	}
	_, err = q.gateway.Line(ctx, "serve: listening on ")
	return q, err
}

func (q *queen) dialAdmin(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/%d/cwd/%s/admin.sock", q.cell.PID(), cellFolder))
}

// Target implements Peer.
func (q *queen) Target() load.Peer {
	return load.Peer{Addr: q.addr, CA: q.at.Identity.CA, Token: q.token}
}

// Processes implements Peer.
func (q *queen) Processes() []*Process { return []*Process{q.gateway, q.cell} }

// Stop implements Peer.
func (q *queen) Stop() {
	if q.admin != nil {
		q.admin.CloseIdleConnections()
	}
	// Nothing of it is kept, so it need not drain.
	q.gateway.kill()
	q.cell.kill()
}

// act is one administrative act.
func (q *queen) act(ctx context.Context, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://cell/admin", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := q.admin.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cell: %s: %s", resp.Status, text)
	}
	return json.Unmarshal(text, answer)
}

// CellRequests implements Cell. GET /auth/me is not metered, and so not counted:
// there is one for each cold login and for each token every 30 s.
func (q *queen) CellRequests(ctx context.Context) (int64, error) {
	var total int64
	now := time.Now().UTC()
	// The month before as well, or a month that begins takes everything away.
	for _, month := range []string{now.Format("2006-01"), now.AddDate(0, 0, -now.Day()).Format("2006-01")} {
		var answer struct {
			Usage []struct {
				Reqs int64 `json:"reqs"`
			} `json:"usage"`
		}
		if err := q.act(ctx, map[string]string{"op": "usage", "month": month}, &answer); err != nil {
			return 0, err
		}
		for _, row := range answer.Usage {
			total += row.Reqs
		}
	}
	return total, nil
}

// NewTokens implements Cell.
func (q *queen) NewTokens(ctx context.Context, n int) ([]string, error) {
	tokens := make([]string, n)
	for i := range tokens {
		var answer struct {
			KeyText string `json:"key_text"`
		}
		request := map[string]any{"op": "key.add", "cluster": clusterName, "scopes": []string{"read", "produce", "consume"}}
		if err := q.act(ctx, request, &answer); err != nil {
			return nil, err
		}
		if answer.KeyText == "" {
			return nil, errors.New("cell: a key without text")
		}
		tokens[i] = answer.KeyText
	}
	return tokens, nil
}
