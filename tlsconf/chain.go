package tlsconf

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
)

// ErrMismatch is a key that belongs to no certificate of the chain.
var ErrMismatch = errors.New("the key does not belong to the first certificate")

// ErrChainOrder is a key that belongs to a later certificate of the chain: the
// listener's own has to be first.
var ErrChainOrder = errors.New("the certificates are out of order")

// mismatch tells a wrong key from a file whose certificates are out of order.
func mismatch(chain [][]byte, key crypto.Signer) error {
	for i, der := range chain {
		if c, err := x509.ParseCertificate(der); err == nil && sameKey(c.PublicKey, key.Public()) {
			return fmt.Errorf("%w: the key belongs to certificate %d, which has to be first", ErrChainOrder, i+1)
		}
	}
	return ErrMismatch
}

// Chain are the certificates in the order they are served.
func (p *Pair) Chain() []*x509.Certificate {
	chain := make([]*x509.Certificate, 0, len(p.cert.Certificate))
	for _, der := range p.cert.Certificate {
		if c, err := x509.ParseCertificate(der); err == nil { // it has been parsed before
			chain = append(chain, c)
		}
	}
	return chain
}
