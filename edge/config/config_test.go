package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/sasl"
)

const advertised = "QUEEN_KAFKA_ADVERTISED_ADDR"

// lookup reads pairs of a test, over an environment that is otherwise legal.
func lookup(pairs ...string) func(string) (string, bool) {
	env := map[string]string{advertised: "kafka.example:9092"}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func read(t *testing.T, pairs ...string) Config {
	t.Helper()
	c, err := FromLookup(lookup(pairs...))
	if err != nil {
		t.Fatalf("FromLookup(%q): %v", pairs, err)
	}
	if err := c.Validate(); err != nil {
		t.Fatalf("Validate after %q: %v", pairs, err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	got := read(t)
	want := Defaults()
	want.Advertised = Addr{Host: "kafka.example", Port: 9092}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("an empty environment gives\n%+v\nwant the defaults\n%+v", got, want)
	}
}

func TestGoodValues(t *testing.T) {
	ms := time.Millisecond
	tests := []struct {
		variable, value string
		get             func(Config) any
		want            any
	}{
		{"QUEEN_URL", "http://cell:6632", func(c Config) any { return c.URL }, "http://cell:6632"},
		{"QUEEN_URL", "https://cell/", func(c Config) any { return c.URL }, "https://cell"},
		{"QUEEN_URL", " https://cell/base// ", func(c Config) any { return c.URL }, "https://cell/base"},
		{"QUEEN_URL", "http://[::1]:6632", func(c Config) any { return c.URL }, "http://[::1]:6632"},
		{"QUEEN_TOKEN", " qk_abc ", func(c Config) any { return c.Token.Reveal() }, "qk_abc"},
		{"QUEEN_TOKEN", strings.Repeat("a", 16<<10), func(c Config) any { return len(c.Token.Reveal()) }, 16 << 10},
		{"QUEEN_KAFKA_ADDR", "127.0.0.1:1", func(c Config) any { return c.Addr }, "127.0.0.1:1"},
		{"QUEEN_KAFKA_ADDR", "[::]:65535", func(c Config) any { return c.Addr }, "[::]:65535"},
		{"QUEEN_KAFKA_ADDR", "0.0.0.0:9092", func(c Config) any { return c.Addr }, "0.0.0.0:9092"},
		{"QUEEN_KAFKA_ADDR", "[fe80::1%eth0]:9092", func(c Config) any { return c.Addr }, "[fe80::1%eth0]:9092"},
		{advertised, "kafka.example.:9093", func(c Config) any { return c.Advertised }, Addr{Host: "kafka.example", Port: 9093}},
		{advertised, "[2001:db8::1]:9092", func(c Config) any { return c.Advertised.String() }, "[2001:db8::1]:9092"},
		{advertised, "localhost:9092", func(c Config) any { return c.Advertised.String() }, "localhost:9092"},
		{advertised, "kafka_1:9092", func(c Config) any { return c.Advertised.Host }, "kafka_1"},
		{"QUEEN_KAFKA_MAX_PARTITIONS", "1", func(c Config) any { return c.MaxPartitions }, int32(1)},
		{"QUEEN_KAFKA_MAX_PARTITIONS", "1", func(c Config) any { return c.DefaultPartitions }, int32(1)},
		{"QUEEN_KAFKA_MAX_PARTITIONS", "1500000", func(c Config) any { return c.MaxPartitions }, int32(1_500_000)},
		{"QUEEN_KAFKA_DEFAULT_PARTITIONS", "1", func(c Config) any { return c.DefaultPartitions }, int32(1)},
		{"QUEEN_KAFKA_DEFAULT_PARTITIONS", "1000000", func(c Config) any { return c.DefaultPartitions }, int32(1_000_000)},
		{"QUEEN_KAFKA_MAX_PRODUCER_STATES", "1024", func(c Config) any { return c.MaxProducerStates }, 1024},
		{"QUEEN_KAFKA_MAX_PRODUCER_STATES", "67108864", func(c Config) any { return c.MaxProducerStates }, 67_108_864},
		{"QUEEN_KAFKA_MAX_CONNECTIONS", "16", func(c Config) any { return c.MaxConnections }, 16},
		{"QUEEN_KAFKA_MAX_CONNECTIONS", "1000000", func(c Config) any { return c.MaxConnections }, 1_000_000},
		{"QUEEN_KAFKA_SASL", "plain", func(c Config) any { return c.SASL }, []sasl.Mechanism{sasl.Plain}},
		{"QUEEN_KAFKA_SASL", "OAuthBearer, plain,plain", func(c Config) any { return c.SASL }, []sasl.Mechanism{sasl.OAuthBearer, sasl.Plain}},
		{"QUEEN_KAFKA_SASL", " PLAIN ", func(c Config) any { return c.SASL }, []sasl.Mechanism{sasl.Plain}},
		{"QUEEN_KAFKA_FORWARD_SNI_HOST", "FALSE", func(c Config) any { return c.ForwardSNIHost }, false},
		{"QUEEN_KAFKA_LOGIN_TIMEOUT_MS", "1000", func(c Config) any { return c.LoginTimeout }, 1000 * ms},
		{"QUEEN_KAFKA_LOGIN_TIMEOUT_MS", "120000", func(c Config) any { return c.LoginTimeout }, 120_000 * ms},
		{"QUEEN_KAFKA_AUTH_CACHE_MS", "0", func(c Config) any { return c.AuthCache }, 0 * ms},
		{"QUEEN_KAFKA_AUTH_CACHE_MS", "60000", func(c Config) any { return c.AuthCache }, 60_000 * ms},
		{"QUEEN_KAFKA_REVERIFY_MS", "1000", func(c Config) any { return c.Reverify }, 1000 * ms},
		{"QUEEN_KAFKA_REVERIFY_MS", "300000", func(c Config) any { return c.Reverify }, 300_000 * ms},
		{"QUEEN_KAFKA_SESSION_LIFETIME_MS", "604800000", func(c Config) any { return c.SessionLife }, 604_800_000 * ms},
		{"QUEEN_KAFKA_CONNECTION_MAX_AGE_MS", "0", func(c Config) any { return c.ConnectionMaxAge }, 0 * ms},
		{"QUEEN_KAFKA_CONNECTION_MAX_AGE_MS", "10000", func(c Config) any { return c.ConnectionMaxAge }, 10_000 * ms},
		{"QUEEN_KAFKA_CONNECTION_MAX_AGE_MS", "604800000", func(c Config) any { return c.ConnectionMaxAge }, 604_800_000 * ms},
		{"QUEEN_KAFKA_TENANT_RESERVE", "0", func(c Config) any { return c.TenantReserve }, 0.0},
		{"QUEEN_KAFKA_TENANT_RESERVE", "0.9", func(c Config) any { return c.TenantReserve }, 0.9},
		{"QUEEN_KAFKA_DRAIN_DELAY_MS", "0", func(c Config) any { return c.DrainDelay }, 0 * ms},
		{"QUEEN_KAFKA_DRAIN_DELAY_MS", "120000", func(c Config) any { return c.DrainDelay }, 120_000 * ms},
		{"QUEEN_KAFKA_DRAIN_GRACE_MS", "0", func(c Config) any { return c.DrainGrace }, 0 * ms},
		{"QUEEN_KAFKA_DRAIN_GRACE_MS", "600000", func(c Config) any { return c.DrainGrace }, 600_000 * ms},
		{"QUEEN_KAFKA_GROUP_JOIN_DELAY_MS", "0", func(c Config) any { return c.Group.JoinDelay }, 0 * ms},
		{"QUEEN_KAFKA_GROUP_JOIN_DELAY_MS", "3600000", func(c Config) any { return c.Group.JoinDelay }, 3_600_000 * ms},
		{"QUEEN_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "1", func(c Config) any { return c.Group.MinSessionTimeout }, ms},
		{"QUEEN_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "300000", func(c Config) any { return c.Group.MinSessionTimeout }, 300_000 * ms},
		{"QUEEN_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS", "6000", func(c Config) any { return c.Group.MaxSessionTimeout }, 6000 * ms},
		{"QUEEN_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS", "3600000", func(c Config) any { return c.Group.MaxSessionTimeout }, 3_600_000 * ms},
		{"QUEEN_KAFKA_TXN_MAX_BYTES", "65536", func(c Config) any { return c.Txn.MaxBytes }, int64(65_536)},
		{"QUEEN_KAFKA_TXN_MAX_BYTES", "67108864", func(c Config) any { return c.Txn.MaxBytes }, int64(67_108_864)},
		{"QUEEN_KAFKA_TXN_MAX_RECORDS", "1", func(c Config) any { return c.Txn.MaxRecords }, 1},
		{"QUEEN_KAFKA_TXN_MAX_RECORDS", "5000000", func(c Config) any { return c.Txn.MaxRecords }, 5_000_000},
		{"QUEEN_KAFKA_TXN_MAX_STAGED_BYTES", "8388608", func(c Config) any { return c.Txn.MaxStagedBytes }, int64(8 << 20)},
		{"QUEEN_KAFKA_TXN_MAX_STAGED_BYTES", "8589934592", func(c Config) any { return c.Txn.MaxStagedBytes }, int64(8 << 30)},
		{"QUEEN_KAFKA_TXN_MAX_OPEN", "1", func(c Config) any { return c.Txn.MaxOpen }, 1},
		{"QUEEN_KAFKA_TXN_MAX_OPEN", "1000000", func(c Config) any { return c.Txn.MaxOpen }, 1_000_000},
		{"QUEEN_KAFKA_TXN_MAX_TIMEOUT_MS", "1000", func(c Config) any { return c.Txn.MaxTimeout }, 1000 * ms},
		{"QUEEN_KAFKA_TXN_MAX_TIMEOUT_MS", "7200000", func(c Config) any { return c.Txn.MaxTimeout }, 7_200_000 * ms},
		{"QUEEN_KAFKA_TENANT_MAX_CONNECTIONS", "1", func(c Config) any { return c.Tenant.MaxConnections }, 1},
		{"QUEEN_KAFKA_TENANT_CONNECT_RATE", "100000", func(c Config) any { return c.Tenant.ConnectRate }, 100_000},
		{"QUEEN_KAFKA_TENANT_MAX_INFLIGHT_BYTES", "1048576", func(c Config) any { return c.Tenant.MaxInFlightBytes }, int64(1 << 20)},
		{"QUEEN_KAFKA_TENANT_MAX_REQUEST_RATE", "1000000", func(c Config) any { return c.Tenant.MaxRequestRate }, 1_000_000},
		{"QUEEN_KAFKA_COALESCE", "1", func(c Config) any { return c.Coalesce }, 1},
		{"QUEEN_KAFKA_COALESCE", "0", func(c Config) any { return c.Coalesce }, 1},
		{"QUEEN_KAFKA_COALESCE", "-7", func(c Config) any { return c.Coalesce }, 1},
		{"QUEEN_KAFKA_COALESCE", "65", func(c Config) any { return c.Coalesce }, 64},
		{"QUEEN_KAFKA_COALESCE", "99999999999999999999", func(c Config) any { return c.Coalesce }, 64},
		{"QUEEN_KAFKA_COALESCE", "-99999999999999999999", func(c Config) any { return c.Coalesce }, 1},
		{"QUEEN_KAFKA_COALESCE", "many", func(c Config) any { return c.Coalesce }, 5},
		{"QUEEN_KAFKA_ADMIN_ADDR", "127.0.0.1:9600", func(c Config) any { return c.AdminAddr }, "127.0.0.1:9600"},
		{"LOG_LEVEL", "DEBUG", func(c Config) any { return c.LogLevel }, "debug"},
		{"LOG_LEVEL", "trace", func(c Config) any { return c.LogLevel }, "debug"},
		{"LOG_LEVEL", "loud", func(c Config) any { return c.LogLevel }, "info"},
		{"RUST_LOG", "queen_kafka=debug,hyper=warn", func(c Config) any { return c.LogLevel }, "debug"},
		{"RUST_LOG", "queen_kafka=debug,warn", func(c Config) any { return c.LogLevel }, "warn"},
		{"RUST_LOG", "off", func(c Config) any { return c.LogLevel }, "off"},
		{"QUEEN_LOG_JSON", "true", func(c Config) any { return c.LogJSON }, true},
		{"QUEEN_LOG_JSON", "TRUE", func(c Config) any { return c.LogJSON }, false},
		{"QUEEN_LOG_JSON", "1", func(c Config) any { return c.LogJSON }, false},
	}
	for _, test := range tests {
		t.Run(test.variable+"="+short(test.value), func(t *testing.T) {
			if got := test.get(read(t, test.variable, test.value)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestBadValues(t *testing.T) {
	tests := []struct{ variable, value, want string }{
		{"QUEEN_URL", "cell", "not a URL"},
		{"QUEEN_URL", "http://", "not a URL"},
		{"QUEEN_URL", "http://:6632", "not a URL"},
		{"QUEEN_URL", "ftp://cell", "neither http nor https"},
		{"QUEEN_URL", "http://cell/?a=b", "query"},
		{"QUEEN_URL", "http://cell:port", "not a URL"},
		{"QUEEN_KAFKA_ADDR", "0.0.0.0", "no port"},
		{"QUEEN_KAFKA_ADDR", ":9092", "no host"},
		{"QUEEN_KAFKA_ADDR", "localhost:0", "1 to 65535"},
		{"QUEEN_KAFKA_ADDR", "localhost:65536", "1 to 65535"},
		{"QUEEN_KAFKA_ADDR", "localhost:kafka", "1 to 65535"},
		{"QUEEN_KAFKA_ADDR", "localhost:+9092", "1 to 65535"},
		{"QUEEN_KAFKA_ADDR", "localhost:", "1 to 65535"},
		{"QUEEN_KAFKA_ADDR", "::1", "[::1]:9092"},
		{"QUEEN_KAFKA_ADDR", "[::1]", "[::1]:9092"},
		{"QUEEN_KAFKA_ADDR", "2001:db8::1:9092", "[2001:db8::1]:9092"},
		{"QUEEN_KAFKA_ADDR", "fe80::1:9092", "[fe80::1]:9092"},
		{"QUEEN_KAFKA_ADDR", "https://cell:9092", "no port"},
		{"QUEEN_KAFKA_ADDR", "a host:9092", "not a host name"},
		{advertised, "0.0.0.0:9092", "wildcard"},
		{advertised, "[::]:9092", "wildcard"},
		{advertised, "[0:0:0:0:0:0:0:0]:9092", "wildcard"},
		{advertised, "[::ffff:0.0.0.0]:9092", "wildcard"},
		{advertised, "[::%eth0]:9092", "wildcard"},
		{advertised, "[fe80::1%eth0]:9092", "zone"},
		{advertised, "kafka.example", "no port"},
		{advertised, "kafka.example:0", "1 to 65535"},
		{advertised, "::1:9092", "[::1]:9092"},
		{advertised, "sni:9093", "QUEEN_KAFKA_LANES"},
		{"QUEEN_KAFKA_MAX_PARTITIONS", "0", "out of range"},
		{"QUEEN_KAFKA_MAX_PARTITIONS", "1500001", "out of range"},
		{"QUEEN_KAFKA_DEFAULT_PARTITIONS", "0", "out of range"},
		{"QUEEN_KAFKA_DEFAULT_PARTITIONS", "1000001", "QUEEN_KAFKA_MAX_PARTITIONS"},
		{"QUEEN_KAFKA_DEFAULT_PARTITIONS", "1500001", "out of range"},
		{"QUEEN_KAFKA_MAX_PRODUCER_STATES", "1023", "out of range"},
		{"QUEEN_KAFKA_MAX_PRODUCER_STATES", "67108865", "out of range"},
		{"QUEEN_KAFKA_MAX_CONNECTIONS", "15", "out of range"},
		{"QUEEN_KAFKA_TENANT_MAX_CONNECTIONS", "0", "out of range"},
		{"QUEEN_KAFKA_TENANT_CONNECT_RATE", "0.5", "not a whole number"},
		{"QUEEN_KAFKA_TENANT_MAX_INFLIGHT_BYTES", "1048575", "out of range"},
		{"QUEEN_KAFKA_TENANT_MAX_REQUEST_RATE", "-1", "out of range"},
		{"QUEEN_KAFKA_MAX_CONNECTIONS", "1000001", "out of range"},
		{"QUEEN_KAFKA_MAX_CONNECTIONS", "4096.0", "not a whole number"},
		{"QUEEN_KAFKA_MAX_CONNECTIONS", "99999999999999999999", "out of range"},
		{"QUEEN_KAFKA_SASL", "scram", "not a mechanism"},
		{"QUEEN_KAFKA_FORWARD_SNI_HOST", "yes", "neither true nor false"},
		{"QUEEN_KAFKA_FORWARD_SNI_HOST", "true", "QUEEN_KAFKA_TLS_CERT"},
		{"QUEEN_KAFKA_LOGIN_TIMEOUT_MS", "999", "out of range"},
		{"QUEEN_KAFKA_LOGIN_TIMEOUT_MS", "120001", "out of range"},
		{"QUEEN_KAFKA_LOGIN_TIMEOUT_MS", "10s", "not a whole number"},
		{"QUEEN_KAFKA_AUTH_CACHE_MS", "-1", "out of range"},
		{"QUEEN_KAFKA_AUTH_CACHE_MS", "60001", "out of range"},
		{"QUEEN_KAFKA_PROXY_PROTOCOL", "required", "QUEEN_KAFKA_PROXY_TRUSTED"},
		{"QUEEN_KAFKA_PROXY_TRUSTED", "192.0.2.0/24", "QUEEN_KAFKA_PROXY_PROTOCOL"},
		{"QUEEN_KAFKA_CONNECTION_MAX_AGE_MS", "9999", "out of range"},
		{"QUEEN_KAFKA_CONNECTION_MAX_AGE_MS", "-1", "out of range"},
		{"QUEEN_KAFKA_CONNECTION_MAX_AGE_MS", "604800001", "out of range"},
		{"QUEEN_KAFKA_TENANT_RESERVE", "-0.01", "out of range"},
		{"QUEEN_KAFKA_TENANT_RESERVE", "0.91", "out of range"},
		{"QUEEN_KAFKA_TENANT_RESERVE", "NaN", "out of range"},
		{"QUEEN_KAFKA_TENANT_RESERVE", "1e999", "out of range"},
		{"QUEEN_KAFKA_TENANT_RESERVE", "25%", "not a number"},
		{"QUEEN_KAFKA_DRAIN_DELAY_MS", "-1", "out of range"},
		{"QUEEN_KAFKA_DRAIN_DELAY_MS", "120001", "out of range"},
		{"QUEEN_KAFKA_DRAIN_GRACE_MS", "-1", "out of range"},
		{"QUEEN_KAFKA_DRAIN_GRACE_MS", "600001", "out of range"},
		{"QUEEN_KAFKA_GROUP_JOIN_DELAY_MS", "-1", "out of range"},
		{"QUEEN_KAFKA_GROUP_JOIN_DELAY_MS", "3600001", "out of range"},
		{"QUEEN_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "0", "out of range"},
		{"QUEEN_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "3600001", "out of range"},
		{"QUEEN_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "300001", "QUEEN_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS"},
		{"QUEEN_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS", "0", "out of range"},
		{"QUEEN_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS", "3600001", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_BYTES", "65535", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_BYTES", "67108865", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_RECORDS", "0", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_RECORDS", "5000001", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_STAGED_BYTES", "1048575", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_STAGED_BYTES", "8589934593", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_STAGED_BYTES", "1048576", "QUEEN_KAFKA_TXN_MAX_BYTES"},
		{"QUEEN_KAFKA_TXN_MAX_OPEN", "0", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_OPEN", "1000001", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_TIMEOUT_MS", "999", "out of range"},
		{"QUEEN_KAFKA_TXN_MAX_TIMEOUT_MS", "7200001", "out of range"},
		{"QUEEN_KAFKA_TLS_CERT", "/cert.pem", "QUEEN_KAFKA_TLS_KEY"},
		{"QUEEN_KAFKA_TLS_KEY", "/key.pem", "QUEEN_KAFKA_TLS_CERT"},
	}
	for _, test := range tests {
		t.Run(test.variable+"="+short(test.value), func(t *testing.T) {
			_, err := FromLookup(lookup(test.variable, test.value))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
			if n := len(Problems(err)); n != 1 {
				t.Errorf("%d problems, want exactly one:\n%v", n, err)
			}
		})
	}
}

// A bad value is told with the variable, the value, the legal range and the
// default, so that nobody has to look them up.
func TestBadValueSaysEverything(t *testing.T) {
	_, err := FromLookup(lookup("QUEEN_KAFKA_MAX_CONNECTIONS", "7"))
	want := `QUEEN_KAFKA_MAX_CONNECTIONS="7": out of range; legal: 16–1000000; default: 4096`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestEveryBadValueNamesRangeAndDefault(t *testing.T) {
	for _, v := range variables() {
		_, err := FromLookup(lookup(v.name, "\x01"))
		for _, p := range Problems(err) {
			if p.Variable != v.name {
				continue
			}
			if p.Value == "" || p.Legal == "" || p.Default == "" || p.Reason == "" {
				t.Errorf("%s: incomplete problem %q", v.name, p)
			}
		}
	}
}

func TestAdvertisedIsRequired(t *testing.T) {
	_, err := FromLookup(func(string) (string, bool) { return "", false })
	if err == nil || !strings.Contains(err.Error(), "QUEEN_KAFKA_ADVERTISED_ADDR: required") ||
		!strings.Contains(err.Error(), "QUEEN_KAFKA_ADDR (0.0.0.0:9092)") {
		t.Errorf("got %v", err)
	}
}

// Blank is unset for every variable there is, those of later versions included.
func TestBlankIsUnset(t *testing.T) {
	want := read(t)
	names := unbuilt()
	for _, v := range variables() {
		if v.name != advertised {
			names = append(names, v.name)
		}
	}
	for _, name := range names {
		for _, blank := range []string{"", " ", "\t \n"} {
			if got := read(t, name, blank); !reflect.DeepEqual(got, want) {
				t.Errorf("%s=%q changes the configuration", name, blank)
			}
		}
	}
	if _, err := FromLookup(lookup(advertised, " \n")); err == nil || !strings.Contains(err.Error(), "required") {
		t.Errorf("a blank advertised address: %v", err)
	}
}

// A setting of a later version stops the boot and its value stays unseen.
func TestUnbuiltSettingsAreRefused(t *testing.T) {
	for _, name := range unbuilt() {
		_, err := FromLookup(lookup(name, "hush-0123"))
		if err == nil || !strings.Contains(err.Error(), name+": this version does not have this setting yet") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "hush-0123") {
			t.Errorf("%s: the value is shown: %v", name, err)
		}
	}
}

func TestOTLP(t *testing.T) {
	c := read(t, "QUEEN_KAFKA_OTLP_ENDPOINT", "https://collector:4318/x", "QUEEN_KAFKA_OTLP_RATIO", "1")
	if c.OTLPEndpoint != "https://collector:4318/x" || c.OTLPRatio != 1 || read(t).OTLPRatio != 0.01 {
		t.Errorf("%q %v", c.OTLPEndpoint, c.OTLPRatio)
	}
	for _, pair := range [][2]string{
		{"QUEEN_KAFKA_OTLP_ENDPOINT", "collector:4318"},
		{"QUEEN_KAFKA_OTLP_ENDPOINT", "grpc://collector:4317"},
		{"QUEEN_KAFKA_OTLP_ENDPOINT", "http://user:hush@collector"},
		{"QUEEN_KAFKA_OTLP_ENDPOINT", "http://collector/?key=hush"},
		{"QUEEN_KAFKA_OTLP_RATIO", "1.01"},
		{"QUEEN_KAFKA_OTLP_RATIO", "-0.1"},
		{"QUEEN_KAFKA_OTLP_RATIO", "NaN"},
		{"QUEEN_KAFKA_OTLP_RATIO", "some"},
	} {
		_, err := FromLookup(lookup(pair[0], pair[1]))
		if p := Problems(err); len(p) != 1 || p[0].Variable != pair[0] || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v: %v", pair, err)
		}
	}
}

func TestNoSecretIsShown(t *testing.T) {
	const secret = "qk_live_0123456789"
	pairs := [][]string{
		{"QUEEN_TOKEN", secret + " x"},
		{"QUEEN_TOKEN", secret + "é"},
		{"QUEEN_TOKEN", strings.Repeat(secret, 1000)},
		{"QUEEN_URL", "ftp://user:" + secret + "@cell"},
		{"QUEEN_URL", "http://user:" + secret + "@cell"},
		{"QUEEN_URL", "http://user:pass word" + secret + "@cell"},
		// Pasted into the wrong variable.
		{"QUEEN_KAFKA_ADDR", secret},
		{advertised, secret},
		{"QUEEN_KAFKA_SASL", secret},
		{"QUEEN_KAFKA_MAX_CONNECTIONS", secret},
	}
	for _, pair := range pairs {
		_, err := FromLookup(lookup(pair...))
		if err == nil {
			t.Errorf("%s: accepted", pair[0])
			continue
		}
		if strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%s: the secret is shown: %v", pair[0], err)
		}
	}
	c := read(t, "QUEEN_TOKEN", secret)
	if s := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(s, "0123456789") {
		t.Error("printing a Config shows the token")
	}
}

func TestLongValuesAreCut(t *testing.T) {
	_, err := FromLookup(lookup("QUEEN_KAFKA_SASL", strings.Repeat("x", 5000)))
	if n := len(err.Error()); n > 400 {
		t.Errorf("the error is %d bytes long", n)
	}
}

func TestAllProblemsAreReported(t *testing.T) {
	_, err := FromLookup(lookup("QUEEN_KAFKA_SASL", "no", "QUEEN_KAFKA_COALESCE", "no", advertised, "x",
		"QUEEN_KAFKA_TXN_MAX_OPEN", "0", "QUEEN_KAFKA_REPLICAS", "shared"))
	var got []string
	for _, p := range Problems(err) {
		got = append(got, p.Variable)
	}
	want := []string{advertised, "QUEEN_KAFKA_SASL", "QUEEN_KAFKA_TXN_MAX_OPEN", "QUEEN_KAFKA_REPLICAS"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("problems of %v, want %v", got, want)
	}
	if Problems(nil) != nil || Problems(errors.New("other")) != nil {
		t.Error("Problems of a foreign error")
	}
}

func TestRustLogWins(t *testing.T) {
	if c := read(t, "LOG_LEVEL", "error", "RUST_LOG", "debug"); c.LogLevel != "debug" {
		t.Errorf("LogLevel = %q", c.LogLevel)
	}
}

// Ranges bind operators, not tests: ceilings of 8 must be possible in code.
func TestValidateAllowsTestCeilings(t *testing.T) {
	c := Defaults()
	c.Advertised = Addr{Host: "127.0.0.1", Port: 9092}
	c.MaxConnections, c.MaxProducerStates, c.Txn.MaxOpen, c.Limits.Lanes = 8, 8, 8, 8
	c.MaxPartitions, c.DefaultPartitions = 8, 8
	c.Txn.MaxBytes, c.Txn.MaxStagedBytes = 8, 8
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateRefusesContradictions(t *testing.T) {
	tests := []struct {
		variable string
		change   func(*Config)
	}{
		{advertised, func(c *Config) { c.Advertised = Addr{} }},
		{advertised, func(c *Config) { c.Advertised.Host = "0.0.0.0" }},
		{advertised, func(c *Config) { c.Advertised.Port = 0 }},
		{"QUEEN_URL", func(c *Config) { c.URL = "" }},
		{"QUEEN_KAFKA_ADDR", func(c *Config) { c.Addr = "" }},
		{"QUEEN_KAFKA_TLS_KEY", func(c *Config) { c.TLSCert = "x" }},
		{"QUEEN_KAFKA_TLS_CERT", func(c *Config) { c.TLSKey = "x" }},
		{"QUEEN_KAFKA_FORWARD_SNI_HOST", func(c *Config) { c.ForwardSNIHost = true }},
		{"QUEEN_KAFKA_DEFAULT_PARTITIONS", func(c *Config) { c.MaxPartitions = 8 }},
		{"QUEEN_KAFKA_DEFAULT_PARTITIONS", func(c *Config) { c.DefaultPartitions = 0 }},
		{"QUEEN_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", func(c *Config) { c.Group.MaxSessionTimeout = time.Second }},
		{"QUEEN_KAFKA_TXN_MAX_BYTES", func(c *Config) { c.Txn.MaxStagedBytes = 8 }},
		{"QUEEN_KAFKA_MAX_CONNECTIONS", func(c *Config) { c.MaxConnections = 0 }},
		{"QUEEN_KAFKA_ADMIN_PPROF", func(c *Config) { c.AdminPprof, c.AdminAddr = true, "127.0.0.1:1" }},
		{"QUEEN_KAFKA_TENANT_RESERVE", func(c *Config) { c.TenantReserve = 1 }},
	}
	for _, test := range tests {
		c := Defaults()
		c.Advertised = Addr{Host: "kafka.example", Port: 9092}
		test.change(&c)
		problems := Problems(c.Validate())
		if len(problems) != 1 || problems[0].Variable != test.variable {
			t.Errorf("%s: got %v", test.variable, problems)
		}
	}
}

func TestForwardingWithTLS(t *testing.T) {
	c := read(t, "QUEEN_KAFKA_FORWARD_SNI_HOST", "True", "QUEEN_KAFKA_TLS_CERT", "/c", "QUEEN_KAFKA_TLS_KEY", "/k")
	if !c.ForwardSNIHost || !c.TLS() || c.TLSCert != "/c" || c.TLSKey != "/k" {
		t.Errorf("got %+v", c)
	}
}

func TestWarnings(t *testing.T) {
	if w := warnings(read(t, "QUEEN_KAFKA_SASL", "plain")); len(w) != 1 || !strings.Contains(w[0], "in the clear") {
		t.Errorf("PLAIN without TLS: %q", w)
	}
	if w := warnings(read(t, "QUEEN_TOKEN", "t")); len(w) != 1 || !strings.Contains(w[0], "QUEEN_TOKEN") {
		t.Errorf("token without login: %q", w)
	}
	if w := warnings(read(t, "QUEEN_KAFKA_SASL", "plain", "QUEEN_KAFKA_TLS_CERT", "/c", "QUEEN_KAFKA_TLS_KEY", "/k")); w != nil {
		t.Errorf("a sound configuration: %q", w)
	}
}

func TestFromEnvReadsTheEnvironment(t *testing.T) {
	t.Setenv(advertised, "from.env:1234")
	c, err := FromEnv()
	if err != nil || c.Advertised.String() != "from.env:1234" {
		t.Errorf("got %v, %v", c.Advertised, err)
	}
}

func warnings(c Config) []string { return c.Warnings() }

func short(s string) string { return s[:min(len(s), 32)] }
