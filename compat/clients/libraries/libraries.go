// Package libraries runs checks that three libraries go through beside the ones
// of the matrix: Apache Kafka's Java clients, librdkafka and franz-go. It wants
// what `runner --deps` installs for java and confluent-kafka-python.
package libraries

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/queen-mq/queen-edge/compat/demo"
)

// World is what a check runs in: a demo, whose cell the gateways of the check
// stand before.
type World struct {
	demo    *demo.Demo
	check   string // its name, which is its folder's
	clients string // the folder of that folder
	program string
	dir     string
}

// Start builds the program and starts a demo. Stop the world.
func Start(ctx context.Context, check string) (*World, error) {
	root, err := demo.ModuleRoot(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "queen-edge-"+check+"-")
	if err != nil {
		return nil, err
	}
	w := &World{check: check, clients: filepath.Join(root, "compat", "clients"), program: filepath.Join(dir, "queen-edge"), dir: dir}
	if err := demo.Build(ctx, root, w.program); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if w.demo, err = demo.Start(ctx, w.program, dir, filepath.Join(dir, "demo.log")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return w, nil
}

// Stop ends the demo, and removes what the world has on disk.
func (w *World) Stop() error { return errors.Join(w.demo.Stop(), os.RemoveAll(w.dir)) }

// Work is where a client works, and as whom.
type Work struct{ Name, Addr, CA, Token string }

// Gateway starts a gateway for one library, with more settings (NAME=value), and
// the work of a tenant of the demo (ACME, GLOBEX) there. Stop the gateway.
func (w *World) Gateway(library, tenant string, settings ...string) (*demo.Gateway, Work, error) {
	own := filepath.Join(w.dir, library)
	if err := os.Mkdir(own, 0o700); err != nil {
		return nil, Work{}, err
	}
	g, err := demo.StartGateway(w.program, own, w.demo.Env["QUEEN_EDGE_CELL_URL"], settings...)
	if err != nil {
		return nil, Work{}, err
	}
	return g, Work{w.check + "-" + library, g.Addr, g.CA, w.demo.Env["QUEEN_EDGE_TOKEN_"+tenant]}, nil
}

// Script runs the client of another language: Check.java for java, check.py for
// librdkafka, in the check's folder. It is told its work by variables CHECK_ADDR,
// CHECK_CA, CHECK_TOKEN, CHECK_NAME, and more (NAME=value, which become
// CHECK_NAME). The answer is the words of the last line it prints.
func (w *World) Script(ctx context.Context, library string, work Work, more ...string) ([]string, error) {
	cache, here := filepath.Join(w.clients, ".cache"), filepath.Join(w.clients, w.check)
	args := []string{filepath.Join(cache, "confluent-kafka-python", "venv", "bin", "python"), "-B", filepath.Join(here, w.check+".py")}
	if library == "java" {
		args = []string{
			"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
			"-cp", filepath.Join(cache, "java", "4.4.0", "lib", "*"), filepath.Join(here, strings.ToUpper(w.check[:1])+w.check[1:]+".java"),
		}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = os.Environ()
	for _, v := range append([]string{"ADDR=" + work.Addr, "CA=" + work.CA, "TOKEN=" + work.Token, "NAME=" + work.Name}, more...) {
		cmd.Env = append(cmd.Env, strings.ToUpper(w.check)+"_"+v)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Fields(lines[len(lines)-1]), nil
}

// Franz is what a franz-go client of a work needs.
func Franz(work Work) ([]kgo.Opt, error) {
	pem, err := os.ReadFile(work.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return []kgo.Opt{
		kgo.SeedBrokers(work.Addr), kgo.SASL(plain.Auth{User: "compat", Pass: work.Token}.AsMechanism()),
		kgo.DialTLSConfig(&tls.Config{RootCAs: roots}), kgo.AllowAutoTopicCreation(),
	}, nil
}
