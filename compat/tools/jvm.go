package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// tool is one of Apache Kafka's command-line tools.
type tool struct {
	class string
	first bool // its address and login come before its verb
}

// tools are the tools by the names of their scripts.
var tools = map[string]tool{
	"kafka-acls":            {class: "org.apache.kafka.tools.AclCommand"},
	"kafka-cluster":         {class: "org.apache.kafka.tools.ClusterTool"},
	"kafka-configs":         {class: "org.apache.kafka.tools.ConfigCommand"},
	"kafka-consumer-groups": {class: "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"},
	"kafka-delete-records":  {class: "org.apache.kafka.tools.DeleteRecordsCommand"},
	"kafka-features":        {class: "org.apache.kafka.tools.FeatureCommand", first: true},
	"kafka-get-offsets":     {class: "org.apache.kafka.tools.GetOffsetShell"},
	"kafka-groups":          {class: "org.apache.kafka.tools.GroupsCommand"},
	"kafka-log-dirs":        {class: "org.apache.kafka.tools.LogDirsCommand"},
	"kafka-topics":          {class: "org.apache.kafka.tools.TopicCommand"},
	"kafka-transactions":    {class: "org.apache.kafka.tools.TransactionsCommand", first: true},
}

// jvm is the one process that runs all tools (Tools.java).
type jvm struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	log strings.Builder // of the process itself
}

// startJVM ends with ctx.
func startJVM(ctx context.Context, jars, source string) (*jvm, error) {
	j := &jvm{cmd: exec.CommandContext(ctx, "java",
		"-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "-Duser.language=en",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", filepath.Join(jars, "*"), source)}
	j.cmd.Stderr = &j.log
	var err error
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.out = bufio.NewScanner(out)
	return j, j.cmd.Start()
}

// run runs a tool. said is what it printed, with its exit status where that is
// not 0.
func (j *jvm) run(class string, args []string) (said []string, err error) {
	if _, err := fmt.Fprintln(j.in, strings.Join(append([]string{class}, args...), "\t")); err != nil {
		return nil, err
	}
	for j.out.Scan() {
		line := j.out.Text()
		if text, ok := strings.CutPrefix(line, "|"); ok {
			said = append(said, text)
			continue
		}
		code, err := strconv.Atoi(strings.TrimPrefix(line, "="))
		if err != nil {
			return nil, fmt.Errorf("the JVM said %q", line)
		}
		if code != 0 {
			said = append(said, fmt.Sprintf("exit status %d", code))
		}
		return said, nil
	}
	return nil, errors.Join(j.stop(), fmt.Errorf("the JVM has ended: %s", j.log.String()))
}

func (j *jvm) stop() error { return errors.Join(j.in.Close(), j.cmd.Wait()) }
