// Package tlsconf makes the TLS side of the listener: it loads a certificate
// pair so that a bad one stops the boot with a sentence an operator can act on,
// and it holds a small certificate authority for development and tests.
package tlsconf

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"
)

// The variables that name the files, for error texts.
const (
	certVariable = "QUEEN_KAFKA_TLS_CERT"
	keyVariable  = "QUEEN_KAFKA_TLS_KEY"
)

// maxPEM bounds a PEM file, in bytes; a wrong path may name anything.
const maxPEM = 1 << 20

// Pair is a certificate chain and its key, checked to belong together.
type Pair struct{ cert tls.Certificate }

// Load reads and checks a pair of PEM files. The chain is served whole, leaf
// first; the first key of the key file wins (PKCS#8, PKCS#1 and SEC 1). Text
// around the blocks and CRLF line ends are fine. An error names the variable
// and the path; it never shows the content.
func Load(certFile, keyFile string) (*Pair, error) {
	chain, err := loadChain(certFile)
	if err != nil {
		return nil, fmt.Errorf("%s=%q: %w", certVariable, certFile, err)
	}
	key, err := loadKey(keyFile)
	if err != nil {
		return nil, fmt.Errorf("%s=%q: %w", keyVariable, keyFile, err)
	}
	p, err := newPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("%s=%q and %s=%q: %w", certVariable, certFile, keyVariable, keyFile, err)
	}
	return p, nil
}

// FromPEM is Load for PEM text in memory.
func FromPEM(certPEM, keyPEM []byte) (*Pair, error) {
	chain, err := parseChain(certPEM)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	return newPair(chain, key)
}

// ServerConfig is a new configuration that serves the pair: TLS 1.2 and 1.3,
// session tickets on, no client certificates, no ALPN. A listener keeps one: the
// ticket keys live in it, so a configuration per connection would resume nothing.
func (p *Pair) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		MaxVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{p.cert},
		ClientAuth:   tls.NoClientCert,
	}
}

// Names are the DNS names and addresses the certificate is for.
func (p *Pair) Names() []string {
	names := append([]string(nil), p.cert.Leaf.DNSNames...)
	for _, ip := range p.cert.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// Covers reports why a client that checks names would refuse the certificate
// for host; nil where it would not.
func (p *Pair) Covers(host string) error { return p.cert.Leaf.VerifyHostname(host) }

// NotAfter is the end of the leaf certificate's life.
func (p *Pair) NotAfter() time.Time { return p.cert.Leaf.NotAfter }

func loadChain(path string) ([][]byte, error) {
	text, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	return parseChain(text)
}

func loadKey(path string) (crypto.Signer, error) {
	text, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	return parseKey(text)
}

func readPEM(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	if info.IsDir() {
		return nil, errors.New("is a folder")
	}
	if info.Size() > maxPEM {
		return nil, errors.New("larger than 1 MiB, so not a PEM file of ours")
	}
	text, err := os.ReadFile(path)
	return text, withoutPath(err)
}

// withoutPath drops the path an os error repeats; the caller names it once.
func withoutPath(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

func parseChain(text []byte) ([][]byte, error) {
	var chain [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("certificate %d does not parse: %w", len(chain)+1, err)
		}
		chain = append(chain, block.Bytes)
	}
	if len(chain) == 0 {
		return nil, errors.New("holds no CERTIFICATE block")
	}
	return chain, nil
}

func parseKey(text []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "PRIVATE KEY":
			return signer(x509.ParsePKCS8PrivateKey(block.Bytes))
		case "RSA PRIVATE KEY":
			if block.Headers["DEK-Info"] != "" {
				return nil, errors.New("the key is encrypted; it has to be in the clear")
			}
			return signer(x509.ParsePKCS1PrivateKey(block.Bytes))
		case "EC PRIVATE KEY":
			if block.Headers["DEK-Info"] != "" {
				return nil, errors.New("the key is encrypted; it has to be in the clear")
			}
			return signer(x509.ParseECPrivateKey(block.Bytes))
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("the key is encrypted; it has to be in the clear")
		}
	}
	return nil, errors.New("holds no PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY block")
}

func signer(key any, err error) (crypto.Signer, error) {
	// The parser's own words are dropped: they might quote the key.
	if err != nil {
		return nil, errors.New("the key block does not parse")
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return s, nil
}

func newPair(chain [][]byte, key crypto.Signer) (*Pair, error) {
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, err
	}
	if !sameKey(leaf.PublicKey, key.Public()) {
		return nil, mismatch(chain, key)
	}
	return &Pair{cert: tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}}, nil
}

func sameKey(a, b crypto.PublicKey) bool {
	switch a := a.(type) {
	case *ecdsa.PublicKey:
		return a.Equal(b)
	case *rsa.PublicKey:
		return a.Equal(b)
	case ed25519.PublicKey:
		return a.Equal(b)
	}
	return false
}
