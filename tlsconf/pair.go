// Package tlsconf makes the TLS side of the listener: the certificates it shows,
// chosen by the name a client dials and watched on disk, and the keys of session
// tickets. What is wrong with a file stops the boot with a sentence an operator
// can act on, and changes nothing later on. It also holds a small certificate
// authority for development and tests.
package tlsconf

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// The variables that name the files, for error texts.
const (
	certVariable   = "QUEEN_KAFKA_TLS_CERT"
	keyVariable    = "QUEEN_KAFKA_TLS_KEY"
	dirVariable    = "QUEEN_KAFKA_TLS_DIR"
	ticketVariable = "QUEEN_KAFKA_TLS_TICKET_KEYS"
)

// Pair is a certificate chain and its key, checked to belong together.
type Pair struct{ cert tls.Certificate }

// Load reads and checks the files of a default pair, as FromPEM does. An error
// names the variable and the path.
func Load(certFile, keyFile string) (*Pair, error) {
	return loadPair(&source{files: []file{{certVariable, certFile}, {keyVariable, keyFile}}})
}

// loadPair is a source that is read once.
func loadPair(src *source) (*Pair, error) { return src.pair(src.read()) }

// FromPEM reads and checks a pair. The chain is served whole, leaf first; the
// first key of the key file wins (PKCS#8, PKCS#1 and SEC 1). Text around the
// blocks and CRLF line ends are fine; a block that has begun and does not end is
// not, for it is a file that is still being written. An error never shows the
// content.
func FromPEM(certPEM, keyPEM []byte) (*Pair, error) {
	p, _, err := parsePair(certPEM, keyPEM)
	return p, err
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

// parsePair is FromPEM, and says which of the two is to blame; of neither alone,
// they do not belong together.
func parsePair(certPEM, keyPEM []byte) (p *Pair, blame int, err error) {
	chain, err := parseChain(certPEM)
	if err != nil {
		return nil, blameCert, err
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, blameKey, err
	}
	p, err = newPair(chain, key)
	return p, blameBoth, err
}

// Which file of a pair an error is about.
const (
	blameCert = iota
	blameKey
	blameBoth
)

// withoutPath drops the path an os error repeats; the caller names it once.
func withoutPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

func parseChain(text []byte) ([][]byte, error) {
	var chain [][]byte
	block, rest := pem.Decode(text)
	for ; block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("certificate %d does not parse: %w", len(chain)+1, err)
		}
		chain = append(chain, block.Bytes)
	}
	if bytes.Contains(rest, []byte("-----BEGIN ")) {
		return nil, fmt.Errorf("block %d is not whole", len(chain)+1)
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
