package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/queen-mq/queen-edge/compat/bench/load"
)

const clusterID = "MkU3OEVBNTcwNTJENDM2Qk"

// jvm is what Apache Kafka's own script gives a broker: the heap, the collector's
// options, and both compilers.
var jvm = []string{
	"-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
	"-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
	"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
}

// oneNode makes one node a cluster: what its defaults say about replicas cannot be.
const oneNode = `process.roles=broker,controller
node.id=0
controller.quorum.voters=0@127.0.0.1:%[2]d
controller.listener.names=CONTROLLER
inter.broker.listener.name=INTERNAL
listeners=%[4]s://127.0.0.1:%[1]d,INTERNAL://127.0.0.1:%[5]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=%[4]s://localhost:%[1]d,INTERNAL://127.0.0.1:%[5]d
listener.security.protocol.map=SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[3]s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
`

const saslSSL = `sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_bench="%s";
ssl.cipher.suites=TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384
ssl.keystore.type=PEM
ssl.keystore.location=%s
`

const syncEach = "log.flush.interval.messages=1"

// kafkaSettings are for the report.
func kafkaSettings(id string) []string {
	settings := []string{
		"one node, broker and controller, " + strings.Join(jvm[:len(jvm)-2], " ") + " (kafka-server-start.sh's; no limit on the compiler)",
		"replication factors of the internal topics 1; otherwise the defaults",
	}
	switch id {
	case KafkaOpen:
		return append(settings, "PLAINTEXT, no login", "flush: left to the kernel (default)")
	case KafkaSync:
		return append(settings, "SASL_SSL, PLAIN, PEM key store, the cipher suite that Go prefers first", syncEach)
	default:
		return append(settings, "SASL_SSL, PLAIN, PEM key store, the cipher suite that Go prefers first", "flush: left to the kernel (default)")
	}
}

// kafka is one node of Apache Kafka.
type kafka struct {
	at     Place
	id     string
	node   *Process
	target load.Peer
}

func startKafka(ctx context.Context, id string, at Place) (*kafka, error) {
	k := &kafka{at: at, id: id}
	var ports [3]int
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	listener, more := "SASL_SSL", fmt.Sprintf(saslSSL, at.Identity.Password, at.Identity.Both)
	k.target = load.Peer{Addr: fmt.Sprintf("%s:%d", host, ports[0]), CA: at.Identity.CA, Token: at.Identity.Password}
	if id == KafkaOpen {
		listener, more = "PLAINTEXT", ""
		k.target.CA, k.target.Token = "", ""
	}
	if id == KafkaSync {
		more += syncEach + "\n"
	}
	file := filepath.Join(at.Dir, "server.properties")
	text := fmt.Sprintf(oneNode, ports[0], ports[1], filepath.Join(at.Dir, "data"), listener, ports[2]) + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	classes := []string{"-cp", filepath.Join(at.Jars, "*")}
	format := exec.CommandContext(ctx, "java", append([]string{"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"},
		append(classes, "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", file)...)...)
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format: %w\n%s", err, out)
	}
	var err error
	k.node, err = Start(ctx, Command{
		Name: "kafka", Dir: at.Dir, Log: filepath.Join(at.Dir, "kafka.log"),
		Args: append(append(append([]string{"java"}, jvm...), classes...), "kafka.Kafka", file),
	})
	if err != nil {
		return nil, err
	}
	if err := answers(ctx, k.node, fmt.Sprintf("127.0.0.1:%d", ports[0])); err != nil {
		k.Stop()
		return nil, err
	}
	return k, nil
}

// Target implements Peer.
func (k *kafka) Target() load.Peer { return k.target }

// Processes implements Peer.
func (k *kafka) Processes() []*Process { return []*Process{k.node} }

// Stop implements Peer. Nothing of it is kept, so it need not tidy up.
func (k *kafka) Stop() { k.node.kill() }

// KafkaVersion reads the version off the name of the jar.
func KafkaVersion(jars string) (string, error) {
	found, err := filepath.Glob(filepath.Join(jars, "kafka_2.13-*.jar"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%s holds %d Apache Kafkas, want one: make deps-diff installs it", jars, len(found))
	}
	return regexp.MustCompile(`[0-9.]+[0-9]`).FindString(filepath.Base(found[0])[len("kafka_2.13-"):]), nil
}

// JavaVersion is what java says of itself.
func JavaVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	return line, err
}
