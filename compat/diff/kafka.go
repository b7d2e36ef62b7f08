package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

const (
	kafkaStart = 90 * time.Second // both starts of a JVM, on a busy machine
	clusterID  = "MkU3OEVBNTcwNTJENDM2Qk"
)

// settings is a single node that is broker and controller, small, and as
// Apache Kafka is by default where a client can see it. What differs has the
// value that the gateway beside it has.
const settings = `process.roles=broker,controller
node.id=0
controller.quorum.voters=0@127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://localhost:%[1]d
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[3]s
num.partitions=4
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
num.network.threads=2
num.io.threads=2
background.threads=1
log.index.size.max.bytes=65536
`

// kafka is a running Apache Kafka.
type kafka struct {
	version string
	cmd     *exec.Cmd
	port    int
	log     string
	exited  chan struct{}
}

// startKafka formats a folder and starts a node on it. It may not answer yet.
func startKafka(ctx context.Context, jars, dir string) (*kafka, error) {
	k := &kafka{log: filepath.Join(dir, "log"), exited: make(chan struct{})}
	var err error
	if k.version, err = versionOf(jars); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	k.port = ports[0]
	file := filepath.Join(dir, "server.properties")
	text := fmt.Sprintf(settings, ports[0], ports[1], filepath.Join(dir, "data"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	format := java(ctx, jars, "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", file)
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format: %w\n%s", err, out)
	}
	log, err := os.Create(k.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	k.cmd = java(ctx, jars, "kafka.Kafka", file)
	k.cmd.Stdout, k.cmd.Stderr = log, log
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	go k.wait()
	return k, nil
}

// java runs a class with a small heap; it ends with ctx.
func java(ctx context.Context, jars string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "java", append([]string{
		"-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(jars, "*"),
	}, args...)...)
}

func (k *kafka) wait() {
	_ = k.cmd.Wait() // its log says why
	close(k.exited)
}

// ready waits until the node answers ApiVersions.
func (k *kafka) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kafkaStart)
	defer cancel()
	return eventually(ctx, "Apache Kafka answers", func() error {
		select {
		case <-k.exited:
			text, _ := os.ReadFile(k.log)
			return errGiveUp{fmt.Errorf("it has ended; its log:\n%s", text)}
		default:
		}
		c, err := k.side().dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		return c.ping()
	})
}

// stop ends the node. Nothing of it is kept, so it need not tidy up.
func (k *kafka) stop() {
	_ = k.cmd.Process.Kill()
	<-k.exited
}

func (k *kafka) side() side { return side{name: "theirs", port: k.port} }

// versionOf reads the version off the name of the jar.
func versionOf(jars string) (string, error) {
	found, err := filepath.Glob(filepath.Join(jars, "kafka_2.13-*.jar"))
	if err != nil || len(found) != 1 {
		return "", errors.Join(err, fmt.Errorf("%s holds %d Apache Kafkas, want one: make deps-diff installs it", jars, len(found)))
	}
	return regexp.MustCompile(`[0-9.]+[0-9]`).FindString(filepath.Base(found[0])[len("kafka_2.13-"):]), nil
}

// freePorts finds ports that nobody listens on at the moment.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		ports = append(ports, ln.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// errGiveUp ends an eventually at once.
type errGiveUp struct{ error }

// eventually tries until ok says nil or ctx ends.
func eventually(ctx context.Context, what string, ok func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		if _, final := err.(errGiveUp); final {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: not in time: %w", what, err)
		}
	}
}
