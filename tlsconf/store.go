package tlsconf

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/sni"
)

// Config is what Open needs. At least one pair has to come of it.
type Config struct {
	CertFile, KeyFile string // the default pair; both or neither
	Pair              *Pair  // a default pair in memory, instead of files
	Dir               string // pairs for names; empty: none
	TicketFile        string // session ticket keys; empty: keys of this process
	Names             *sni.Names
	Log               *zap.Logger      // nil: none
	Clock             func() time.Time // nil: time.Now; of certificates' lives

	// How long what files hold has to stand before it is used, and before it is
	// called bad; and how often they are looked at whatever the system says of
	// changes. 0: 250 ms, 2 s, 30 s.
	Settle, Suspect, Every time.Duration
}

// Store holds the certificates and ticket keys of a listener. Handshakes may use
// it from any goroutine while Run looks after the files.
type Store struct {
	names   *sni.Names
	log     *zap.Logger
	clock   func() time.Time
	base    *tls.Config // holds the ticket keys, so it is never another one
	refusal *tls.Config
	ladder  atomic.Pointer[ladder]
	Hellos  sni.Counts
	loads   [fileKinds][outcomes]atomic.Int64

	// What follows is Run's, after Open.
	cfg     Config
	other   *source            // nil: the default pair is not on disk
	tickets *source            // nil: none
	dir     map[string]*source // by name
	dirTold string             // what was last told to be wrong with the folder
	lone    map[string]bool    // files without their other half that were told of
	expired map[*Pair]bool     // that were told of
}

// Open reads and checks everything. An error names the variable and the file,
// and never shows what a file holds.
func Open(c Config) (*Store, error) {
	s := &Store{
		names: c.Names, log: c.Log, clock: c.Clock, cfg: c,
		dir: map[string]*source{}, lone: map[string]bool{}, expired: map[*Pair]bool{},
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.cfg.Settle = orDefault(c.Settle, 250*time.Millisecond)
	s.cfg.Suspect = orDefault(c.Suspect, 2*time.Second)
	s.cfg.Every = orDefault(c.Every, 30*time.Second)
	s.base = &tls.Config{
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13, ClientAuth: tls.NoClientCert,
		GetConfigForClient: s.hello, GetCertificate: s.certificate,
		WrapSession: s.seal, UnwrapSession: s.open,
	}
	// A configuration without certificates answers with unrecognized_name; one
	// without tickets, so that none lets a client in whose name is refused.
	s.refusal = &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13, SessionTicketsDisabled: true}
	s.ladder.Store(&ladder{named: map[string]*Pair{}, other: c.Pair})
	if err := s.load(); err != nil {
		return nil, err
	}
	s.lookForGaps()
	return s, nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return def
}

// load is the first reading: what is bad is an error.
func (s *Store) load() error {
	if s.cfg.CertFile != "" || s.cfg.KeyFile != "" {
		s.other = &source{files: []file{{certVariable, s.cfg.CertFile}, {keyVariable, s.cfg.KeyFile}}}
		if err := s.use(s.other, s.usePair(defaultName)); err != nil {
			return err
		}
	}
	if s.cfg.Dir != "" {
		found, err := s.list()
		if err != nil {
			return fmt.Errorf("%s: %w", file{dirVariable, s.cfg.Dir}, err)
		}
		for name, stem := range found {
			if err := s.use(s.sourceOf(name, stem), s.usePair(name)); err != nil {
				return err
			}
		}
	}
	if l := s.ladder.Load(); l.other == nil && len(l.named) == 0 {
		return fmt.Errorf("%s: holds no pair <name>.crt and <name>.key, and there is no default pair (%s)", file{dirVariable, s.cfg.Dir}, certVariable)
	}
	if s.cfg.TicketFile != "" {
		s.tickets = &source{files: []file{{ticketVariable, s.cfg.TicketFile}}}
		return s.use(s.tickets, s.useTickets)
	}
	return nil
}

// use reads a source and takes it.
func (s *Store) use(src *source, take func(*source, content) error) error {
	c := src.read()
	if err := take(src, c); err != nil {
		return err
	}
	src.accept(c.digest)
	return nil
}

// TLS is the listener's configuration: TLS 1.2 and 1.3, no client certificates,
// no ALPN. It is one for all connections and stays so, for the ticket keys live
// in it.
func (s *Store) TLS() *tls.Config { return s.base }

// Noter is a connection's socket that wants to know what came of its hello.
type Noter interface{ NoteHello(sni.Hello) }

// hello decides about a connection by the name it dials.
func (s *Store) hello(info *tls.ClientHelloInfo) (*tls.Config, error) {
	h := s.names.Read(info.ServerName)
	if h.Answer != sni.Refused && s.ladder.Load().choose(h) == nil {
		h.Answer = sni.Refused // there is no certificate for it
	}
	s.Hellos.Add(h)
	if conn, ok := info.Conn.(Noter); ok {
		conn.NoteHello(h)
	}
	if h.Answer == sni.Refused {
		return s.refusal, nil
	}
	return nil, nil
}

func (s *Store) certificate(info *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if p := s.ladder.Load().choose(s.names.Read(info.ServerName)); p != nil {
		return &p.cert, nil
	}
	return nil, nil // unrecognized_name: it has gone since hello looked
}

// defaultName stands for the default pair, in logs and metrics; it is no name
// that a file could have.
const defaultName = "(default)"

// usePair takes the content of a pair's files.
func (s *Store) usePair(name string) func(*source, content) error {
	return func(src *source, c content) error {
		p, err := src.pair(c)
		if err != nil {
			return err
		}
		s.put(name, p)
		s.warnOf(name, p)
		return nil
	}
}

// put makes a pair the one that new handshakes show; nil removes it.
func (s *Store) put(name string, p *Pair) {
	old := s.ladder.Load()
	if name == defaultName {
		s.ladder.Store(&ladder{named: old.named, other: p})
		return
	}
	named := make(map[string]*Pair, len(old.named)+1)
	for n, pair := range old.named {
		named[n] = pair
	}
	if named[name] = p; p == nil {
		delete(named, name)
	}
	s.ladder.Store(&ladder{named: named, other: old.other})
}

// useTickets takes the content of the file of ticket keys.
func (s *Store) useTickets(src *source, c content) error {
	keys, err := src.ticketKeys(c)
	if err != nil {
		return err
	}
	s.base.SetSessionTicketKeys(keys)
	if info, err := os.Stat(src.files[0].path); err == nil && info.Mode().Perm()&0o007 != 0 {
		s.log.Warn("the file of ticket keys can be read by every user of this machine, and who has a key can read recorded connections: chmod 600",
			zap.String("variable", ticketVariable), zap.String("file", src.files[0].path))
	}
	return nil
}

// warnOf says what a client will dislike about a pair.
func (s *Store) warnOf(name string, p *Pair) {
	if name != defaultName && p.Covers(probeName(name)) != nil {
		s.log.Warn("a certificate is not for the name of its files: clients that check will refuse it",
			zap.String("name", name), zap.Strings("certificate_names", p.Names()))
	}
	s.warnIfExpired(name, p)
}

func (s *Store) warnIfExpired(name string, p *Pair) {
	if !s.clock().After(p.NotAfter()) || s.expired[p] {
		return
	}
	s.expired[p] = true
	s.log.Warn("a certificate has expired: clients refuse it", zap.String("name", name), zap.Time("not_after", p.NotAfter()))
}

// probeName is a name that *.suffix stands for; a name is itself.
func probeName(lane string) string {
	if suffix, ok := strings.CutPrefix(lane, "*."); ok {
		return "any-name." + suffix
	}
	return lane
}

// lookForGaps says which lanes no certificate is for.
func (s *Store) lookForGaps() {
	l := s.ladder.Load()
	for _, lane := range s.names.Listed() {
		p := l.choose(s.names.Read(probeName(lane)))
		switch {
		case p == nil:
			s.log.Warn("a lane has no certificate: its clients are refused", zap.String("lane", lane))
		case p.Covers(probeName(lane)) != nil:
			s.log.Warn("a lane's certificate is not for its name: clients that check will refuse it",
				zap.String("lane", lane), zap.Strings("certificate_names", p.Names()))
		}
	}
}
