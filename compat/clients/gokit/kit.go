// Package gokit takes the clients written in Go through the shared list of
// checks. A client is a Driver; what a check does and prints is here, by
// README.md one folder up.
package gokit

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

const checkDeadline = 20 * time.Second

// Driver is one client library. Every method makes what it needs and closes it.
type Driver interface {
	// Brokers logs in and returns the addresses of all brokers.
	Brokers(ctx context.Context, token string) ([]string, error)
	// Refused tries to log in and returns all that a user is shown of the
	// refusal; an error if it was not refused.
	Refused(ctx context.Context, token string) (string, error)
	// Produce writes records to partition 0, in order.
	Produce(ctx context.Context, token, topic string, how How, records []Record) error
	// Read reads n records of partition 0 from each of the offsets, one after
	// the other with one consumer.
	Read(ctx context.Context, token, topic string, n int, offsets ...int64) ([]Record, error)
	// OffsetAt looks a time up in partition 0.
	OffsetAt(ctx context.Context, token, topic string, at time.Time) (int64, error)
	// End is the end offset of partition 0.
	End(ctx context.Context, token, topic string) (int64, error)
	// Topics lists all topics.
	Topics(ctx context.Context, token string) ([]string, error)
}

// How is how records are produced.
type How struct {
	Codec      string // none, gzip, snappy, lz4, zstd
	Idempotent bool
}

// Record is a record on its way in or out. Null is nil, empty is not; the zero
// Time leaves the time to the client.
type Record struct {
	Offset     int64
	Key, Value []byte
	Time       time.Time
	Headers    []Header
}

// Header is a record's header.
type Header struct {
	Name  string
	Value []byte
}

// Skip is the error of a client that cannot do a thing at all.
type Skip string

func (s Skip) Error() string { return string(s) }

// Client is a block of the report.
type Client struct {
	Name, Version string
	Driver        Driver
	Cannot        map[string]string
}

// Bootstrap is the address of the gateway.
func Bootstrap() string { return os.Getenv("QUEEN_EDGE_BOOTSTRAP") }

// TLS trusts the authority of the demo.
func TLS() *tls.Config {
	pem, err := os.ReadFile(os.Getenv("QUEEN_EDGE_CA"))
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		fmt.Fprintln(os.Stderr, "no certificates in QUEEN_EDGE_CA:", err)
		os.Exit(2)
	}
	return &tls.Config{RootCAs: roots, ServerName: os.Getenv("QUEEN_EDGE_SNI"), MinVersion: tls.VersionTLS12}
}

// Version is the version of a library this program was built with.
func Version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == module {
			return strings.TrimPrefix(dep.Version, "v")
		}
	}
	return "unknown"
}

// Run takes the clients through all checks.
func Run(clients ...Client) {
	if os.Getenv(memberVariable) != "" {
		beMember(clients)
	}
	rows, err := readRows(os.Getenv("COMPAT_DATASET"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	for _, c := range clients {
		b := &block{Client: c, rows: rows, out: out}
		b.run()
		if err := out.Flush(); err != nil {
			os.Exit(2)
		}
	}
}

type block struct {
	Client
	rows []row
	out  *bufio.Writer
}

// step is one check.
type step struct {
	check string
	do    func(context.Context, string) error
}

func (b *block) run() {
	fmt.Fprintf(b.out, "client %s %s\n", b.Name, b.Version)
	for what, why := range b.Cannot {
		fmt.Fprintf(b.out, "cannot %s: %s\n", what, why)
	}
	steps := []step{
		{"connect", b.connect},
		{"bad-token", b.refusal("not-a-token")},
		{"missing-scope", b.refusal(token("ACME_NOREAD"))},
		{"scope-produce", b.scopeProduce},
		{"scope-consume", b.scopeConsume},
		{"create-by-produce", b.produce("create-by-produce", How{Codec: "none"})},
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		steps = append(steps, step{"codec-" + codec, b.produce("codec", How{Codec: codec})})
	}
	for _, check := range []string{"keys-and-nulls", "headers", "timestamps", "sizes"} {
		steps = append(steps, step{check, b.produce(check, How{Codec: "none"})})
	}
	steps = append(steps,
		step{"consume", b.consume}, step{"seek", b.seek}, step{"by-time", b.byTime}, step{"isolation", b.isolation},
		step{"idempotent", b.produce("idempotent", How{Codec: "none", Idempotent: true})},
	)
	for _, s := range slices.Concat(steps, b.groupSteps(), b.adminSteps(), b.txnSteps()) {
		b.one(s)
	}
}

func (b *block) one(s step) {
	ctx, cancel := context.WithTimeout(context.Background(), checkDeadline)
	defer cancel()
	start := time.Now()
	err := s.do(ctx, s.check)
	fmt.Fprintf(os.Stderr, "%s %s: %s %v\n", b.Version, s.check, time.Since(start).Round(time.Millisecond), err)
	var skip Skip
	switch {
	case err == nil:
		fmt.Fprintf(b.out, "pass %s\n", s.check)
	case errors.As(err, &skip):
		fmt.Fprintf(b.out, "skip %s: %s\n", s.check, oneLine(skip.Error()))
	default:
		fmt.Fprintf(b.out, "fail %s: %s\n", s.check, oneLine(err.Error()))
	}
}

func token(label string) string { return os.Getenv("QUEEN_EDGE_TOKEN_" + label) }

func (b *block) connect(ctx context.Context, _ string) error {
	brokers, err := b.Driver.Brokers(ctx, token("ACME"))
	if err == nil && !slices.Equal(brokers, []string{Bootstrap()}) {
		err = fmt.Errorf("brokers %v, want %s", brokers, Bootstrap())
	}
	return err
}

func (b *block) refusal(password string) func(context.Context, string) error {
	return func(ctx context.Context, check string) error {
		said, err := b.Driver.Refused(ctx, password)
		if err == nil {
			fmt.Fprintf(b.out, "said %s %s\n", check, oneLine(said))
		}
		return err
	}
}

// unauthorized prints what came instead of success.
func (b *block) unauthorized(check string, err error) error {
	var skip Skip
	switch {
	case err == nil:
		return errors.New("it was allowed")
	case errors.As(err, &skip):
		return err
	}
	fmt.Fprintf(b.out, "said %s %s\n", check, oneLine(err.Error()))
	return nil
}

func (b *block) scopeProduce(ctx context.Context, check string) error {
	records := []Record{{Value: []byte("never")}}
	return b.unauthorized(check, b.Driver.Produce(ctx, token("ACME_CONSUME"), readTopic(), How{Codec: "none"}, records))
}

func (b *block) scopeConsume(ctx context.Context, check string) error {
	_, err := b.Driver.Read(ctx, token("ACME_PRODUCE"), readTopic(), 1, 0)
	return b.unauthorized(check, err)
}

func (b *block) produce(lines string, how How) func(context.Context, string) error {
	return func(ctx context.Context, check string) error {
		return b.Driver.Produce(ctx, token("ACME"), b.topic(check), how, b.lines(lines))
	}
}

// lines are those of the data set that a check writes.
func (b *block) lines(check string) []Record {
	var records []Record
	for _, r := range b.rows {
		if r.check == check && b.Cannot[r.id] == "" {
			records = append(records, r.record)
		}
	}
	return records
}

// topic names the topic of a check, and group its group.
func (b *block) topic(check string) string {
	fmt.Fprintf(b.out, "topic %s %s\n", check, b.named(check))
	return b.named(check)
}

func (b *block) group(check string) string {
	fmt.Fprintf(b.out, "group %s %s\n", check, b.named(check))
	return b.named(check)
}

// named is the name of whatever a check has.
func (b *block) named(check string) string {
	return unfit.ReplaceAllString(path.Base(os.Getenv("COMPAT_RUN"))+"-"+b.Name+"-"+b.Version+"-"+check, "_")
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]`)

func readTopic() string { return os.Getenv("COMPAT_READ_TOPIC") }

func (b *block) print(check string, records []Record) {
	for _, r := range records {
		headers := make([]string, len(r.Headers))
		for i, h := range r.Headers {
			headers[i] = form([]byte(h.Name), false) + "=" + form(h.Value, true)
		}
		if len(headers) == 0 {
			headers = []string{"none"}
		}
		fmt.Fprintf(b.out, "read %s %d %s %s %d %s\n", check, r.Offset,
			form(r.Key, true), form(r.Value, true), r.Time.UnixMilli(), strings.Join(headers, ","))
	}
}

func (b *block) consume(ctx context.Context, check string) error {
	count, err := strconv.Atoi(os.Getenv("COMPAT_READ_COUNT"))
	if err != nil {
		return err
	}
	records, err := b.Driver.Read(ctx, token("ACME"), readTopic(), count, 0)
	b.print(check, records)
	return err
}

func (b *block) seek(ctx context.Context, check string) error {
	records, err := b.Driver.Read(ctx, token("ACME"), readTopic(), 1, 5, 1)
	b.print(check, records)
	return err
}

func (b *block) byTime(ctx context.Context, check string) error {
	ms, err := strconv.ParseInt(os.Getenv("COMPAT_TIME"), 10, 64)
	if err != nil {
		return err
	}
	topic := os.Getenv("COMPAT_TIME_TOPIC")
	offset, err := b.Driver.OffsetAt(ctx, token("ACME"), topic, time.UnixMilli(ms))
	if err != nil {
		return err
	}
	records, err := b.Driver.Read(ctx, token("ACME"), topic, 1, offset)
	b.print(check, records)
	return err
}

func (b *block) isolation(ctx context.Context, check string) error {
	var records []Record
	end, err := b.Driver.End(ctx, token("GLOBEX"), readTopic())
	if err == nil {
		records, err = b.Driver.Read(ctx, token("GLOBEX"), readTopic(), int(end), 0)
	}
	var skip Skip // a client that cannot read still lists
	if err != nil && !errors.As(err, &skip) {
		return err
	}
	b.print(check, records)
	topics, err := b.Driver.Topics(ctx, token("GLOBEX"))
	for _, t := range topics {
		fmt.Fprintf(b.out, "list %s\n", t)
	}
	return err
}

// oneLine keeps a text on its line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
