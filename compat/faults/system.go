package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/queen-mq/queen-edge/compat/faults/inject"
	"github.com/queen-mq/queen-edge/compat/faults/window"
	"github.com/queen-mq/queen-edge/compat/ports"
)

// gateways is how many a system has.
const gateways = 2

// system is a cell, a proxy that injects faults, two gateways, each a process of
// its own, and the lane through which a client reaches them.
type system struct {
	exe, dir string
	env      []string // of its gateways, beside what they need
	events   *os.File // faults.jsonl
	cell     *process
	cellURL  string
	token    string
	proxy    *inject.Proxy
	gateways [gateways]*process
	at       [gateways]*ports.Port
	current  int // the gateway the lane leads to
	lane     *lane
}

// startSystem starts one and has its topics made before a gateway has looked: it
// would not look for their windows again for half a minute.
func startSystem(exe, dir string, env []string, topics func(window.Cell) error) (s *system, err error) {
	s = &system{exe: exe, dir: dir, env: env}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.events, err = os.Create(filepath.Join(dir, "faults.jsonl")); err != nil {
		return s, err
	}
	if s.lane, err = startLane(); err != nil {
		return s, err
	}
	if s.proxy, err = inject.Start("127.0.0.1:0", "http://127.0.0.1:1", inject.Plan{}, s.events); err != nil {
		return s, err
	}
	if err = s.startCell("--bootstrap", "faults"); err != nil {
		return s, err
	}
	if err = topics(window.Cell{URL: s.cellURL, Token: s.token}); err != nil {
		return s, fmt.Errorf("topics: %w", err)
	}
	for i := range s.gateways {
		if err = s.startGateway(i); err != nil {
			return s, err
		}
	}
	return s, nil
}

// startCell starts the cell on its folder, at any port: the proxy is told.
func (s *system) startCell(args ...string) (err error) {
	args = append([]string{"cell", "--data", filepath.Join(s.dir, "cell"), "--addr", "127.0.0.1:0"}, args...)
	if s.cell, err = launch(s.exe, filepath.Join(s.dir, "cell.log"), nil, args...); err != nil {
		return err
	}
	if s.token == "" {
		if s.token, err = s.cell.line("cell: its key, shown this once: "); err != nil {
			return err
		}
	}
	url, err := s.cell.line("cell: listening on ")
	if err != nil {
		return err
	}
	s.cellURL = strings.TrimSpace(url)
	return s.proxy.Point(s.cellURL)
}

// startGateway starts a gateway that knows nothing of an earlier one, at the
// address that one had.
func (s *system) startGateway(i int) (err error) {
	if s.at[i] == nil {
		if s.at[i], err = ports.Keep(); err != nil {
			return err
		}
	}
	env := []string{
		"QUEEN_URL=" + s.proxy.URL,
		"QUEEN_KAFKA_ADDR=" + s.at[i].Addr(),
		"QUEEN_KAFKA_ADVERTISED_ADDR=" + s.lane.addr(),
		"QUEEN_KAFKA_SASL=plain",
		"QUEEN_KAFKA_DEFAULT_PARTITIONS=4",
	}
	log := filepath.Join(s.dir, fmt.Sprintf("gateway-%d.log", i))
	if s.gateways[i], err = launch(s.exe, log, append(env, s.env...), "serve"); err != nil {
		return err
	}
	if _, err = s.gateways[i].line("serve: listening on "); err != nil {
		return err
	}
	if i == s.current {
		s.lane.point(s.at[i].Addr())
	}
	return nil
}

func (s *system) close() error {
	var errs []error
	if s.lane != nil {
		s.lane.close()
	}
	for i, g := range s.gateways {
		errs = append(errs, g.stop())
		if s.at[i] != nil {
			errs = append(errs, s.at[i].Close())
		}
	}
	if s.proxy != nil {
		errs = append(errs, s.proxy.Close())
	}
	errs = append(errs, s.cell.stop())
	if s.events != nil {
		errs = append(errs, s.events.Close())
	}
	return errors.Join(errs...)
}
