package main

import (
	"io"
	"text/template"
)

// settings is what the demo prints: both tenants, four clients each.
const settings = `queen-edge demo: two tenants behind one address, {{.Bootstrap}}
Any user name will do; the token is the password. CA: {{.CA}}
{{range .Tenants}}
=== {{.Name}} ===

# kcat
kcat -b {{$.Bootstrap}} -X security.protocol=SASL_SSL -X sasl.mechanisms=PLAIN \
     -X sasl.username={{.Name}} -X sasl.password={{.Token}} \
     -X ssl.ca.location={{$.CA}} -L

# Java (client.properties)
bootstrap.servers={{$.Bootstrap}}
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="{{.Name}}" password="{{.Token}}";
ssl.truststore.type=PEM
ssl.truststore.location={{$.CA}}

# Python (confluent-kafka)
{"bootstrap.servers": "{{$.Bootstrap}}", "security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN",
 "sasl.username": "{{.Name}}", "sasl.password": "{{.Token}}",
 "ssl.ca.location": "{{$.CA}}"}

# Go (franz-go; roots is an x509.CertPool with the CA)
kgo.NewClient(kgo.SeedBrokers("{{$.Bootstrap}}"),
    kgo.SASL(plain.Auth{User: "{{.Name}}", Pass: "{{.Token}}"}.AsMechanism()),
    kgo.DialTLSConfig(&tls.Config{RootCAs: roots}))
{{end}}
Ready. Ctrl-C ends it.
`

type settingsTenant struct{ Name, Token string }

func (d *demoRun) printSettings(w io.Writer) error {
	t, err := template.New("settings").Parse(settings)
	if err != nil {
		return err
	}
	return t.Execute(w, struct {
		Bootstrap, CA string
		Tenants       []settingsTenant
	}{d.bootstrap(), d.caFile, []settingsTenant{{"acme", d.token("ACME")}, {"globex", d.token("GLOBEX")}}})
}
