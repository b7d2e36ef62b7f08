package tlsconf

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// The files of a persistent development CA.
const (
	caCertFile = "ca.crt"
	caKeyFile  = "ca.key"
)

// How long development certificates live, and how far before now they start:
// a container's clock may be behind its host's.
const (
	caLife    = 10 * 365 * 24 * time.Hour
	leafLife  = 365 * 24 * time.Hour
	backdated = time.Hour
)

// DevCA is a certificate authority for development, demos and tests: ECDSA
// P-256, no revocation, its key on disk in the clear. It must never sign for a
// public listener.
type DevCA struct {
	cert    *x509.Certificate
	certPEM []byte
	key     crypto.Signer
}

// NewDevCA makes an authority that lives in memory. name is its common name.
func NewDevCA(name string) (*DevCA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template(name, caLife)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.MaxPathLenZero = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return newDevCA(der, key)
}

// OpenDevCA is the authority kept in dir as ca.crt and ca.key, made on first
// use, so that a client keeps trusting it across restarts. The folder is 0700
// and the key 0600. A certificate without its key is an error: making a new
// authority would silently break every client that trusts the old one.
func OpenDevCA(dir string) (*DevCA, error) {
	certPath, keyPath := filepath.Join(dir, caCertFile), filepath.Join(dir, caKeyFile)
	certPEM, certErr := os.ReadFile(certPath)
	keyPEM, keyErr := os.ReadFile(keyPath)
	switch {
	case certErr == nil && keyErr == nil:
		ca, err := devCAFromPEM(certPEM, keyPEM)
		if err != nil {
			return nil, fmt.Errorf("development CA in %s: %w", dir, err)
		}
		return ca, nil
	case !errors.Is(certErr, os.ErrNotExist):
		// The certificate is written last, so a key alone is a first start that
		// was cut short and trusted by nobody.
		return nil, fmt.Errorf("development CA in %s: cannot be read: %w", dir, errors.Join(certErr, keyErr))
	}
	ca, err := NewDevCA("queen-edge development CA")
	if err != nil {
		return nil, err
	}
	keyPEM, err = keyToPEM(ca.key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := writeFile(keyPath, keyPEM, 0o600); err != nil {
		return nil, err
	}
	return ca, writeFile(certPath, ca.certPEM, 0o644)
}

// CertPEM is the authority's certificate, for a client's trust store.
func (ca *DevCA) CertPEM() []byte { return append([]byte(nil), ca.certPEM...) }

// Pool trusts this authority and no other.
func (ca *DevCA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Issue signs a server certificate for hosts, each a DNS name (a leading *.
// included) or an IP address; at least one. certPEM is the chain: leaf, then
// the authority.
func (ca *DevCA) Issue(hosts []string) (certPEM, keyPEM []byte, err error) {
	if len(hosts) == 0 {
		return nil, nil, errors.New("a certificate needs at least one host")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := template(hosts[0], leafLife)
	if err != nil {
		return nil, nil, err
	}
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip.WithZone("").AsSlice())
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyToPEM(key)
	if err != nil {
		return nil, nil, err
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(certPEM, ca.certPEM...), keyPEM, nil
}

// IssuePair is Issue, loaded.
func (ca *DevCA) IssuePair(hosts []string) (*Pair, error) {
	certPEM, keyPEM, err := ca.Issue(hosts)
	if err != nil {
		return nil, err
	}
	return FromPEM(certPEM, keyPEM)
}

func devCAFromPEM(certPEM, keyPEM []byte) (*DevCA, error) {
	p, err := FromPEM(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	if !p.cert.Leaf.IsCA {
		return nil, errors.New("the certificate is not an authority")
	}
	if time.Now().After(p.cert.Leaf.NotAfter) {
		return nil, errors.New("the certificate has expired; remove the folder to make a new one")
	}
	return newDevCA(p.cert.Certificate[0], p.cert.PrivateKey.(crypto.Signer))
}

func newDevCA(der []byte, key crypto.Signer) (*DevCA, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &DevCA{cert: cert, certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: key}, nil
}

func template(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	start := time.Now().Add(-backdated)
	// X.509 bounds a common name at 64 characters; the hosts are in the SANs.
	if len(name) > 64 {
		name = name[:64]
	}
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: name, Organization: []string{"queen-edge development"}},
		NotBefore:    start,
		NotAfter:     start.Add(life),
	}, nil
}

func keyToPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// writeFile writes beside the target and renames, so that a killed process
// leaves no half a file under the name.
func writeFile(path string, text []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already after the rename
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
