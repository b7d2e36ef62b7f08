package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Identity is the certificate that every peer shows: the same key type for all.
type Identity struct {
	CA    string // PEM files
	Chain string
	Key   string
	Both  string // key and chain in one file, as Apache Kafka wants them
	// Password is what clients log in to Apache Kafka with; queen-edge has tokens
	// of its own.
	Password string
}

const validity = 30 * 24 * time.Hour

// NewIdentity makes an authority, and a certificate of it for localhost.
func NewIdentity(dir string) (Identity, error) {
	id := Identity{
		CA: filepath.Join(dir, "ca.pem"), Chain: filepath.Join(dir, "chain.pem"),
		Key: filepath.Join(dir, "key.pem"), Both: filepath.Join(dir, "both.pem"),
	}
	secret := make([]byte, 24)
	if _, err := rand.Read(secret); err != nil {
		return id, err
	}
	id.Password = hex.EncodeToString(secret)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return id, err
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return id, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return id, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return id, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return id, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	for name, text := range map[string][]byte{
		id.CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), id.Chain: certPEM, id.Key: keyPEM,
		id.Both: append(keyPEM, certPEM...),
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return id, fmt.Errorf("identity: %w", err)
		}
	}
	return id, nil
}
