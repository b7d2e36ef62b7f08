package tlsconf_test

import (
	"bufio"
	"crypto/tls"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queen-mq/queen-edge/tlsconf"
)

// A client of another library resumes at another gateway, with one file of keys;
// a session of another name is not taken.
func TestOpenSSLResumes(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		if os.Getenv("QE_REQUIRE") != "" {
			t.Fatal("openssl is required and not installed (Debian: apt-get install openssl)")
		}
		t.Skip("openssl is not installed (Debian: apt-get install openssl)")
	}
	a, dir := newAuthority(t), t.TempDir()
	put(t, dir, "a.example", a.issue(t, ecKey(t), tomorrow(), "a.example"))
	put(t, dir, "b.example", a.issue(t, ecKey(t), tomorrow(), "b.example"))
	roots := write(t, "root.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw}))
	config := tlsconf.Config{Dir: dir, TicketFile: write(t, "tickets", []byte(keyLine(t)))}
	one, two := listen(t, config), listen(t, config)
	for version, flag := range map[uint16]string{tls.VersionTLS12: "-tls1_2", tls.VersionTLS13: "-tls1_3"} {
		session := filepath.Join(t.TempDir(), "session")
		connect := func(l *listener, name string, flags ...string) string {
			return sClient(t, openssl, session, append([]string{
				"-connect", l.addr, "-servername", name, "-CAfile", roots, "-verify_return_error", "-verify_hostname", name, flag,
			}, flags...)...)
		}
		if got := connect(one, "a.example", "-sess_out", session); got != "New" {
			t.Errorf("%s: a first connection is %s", tls.VersionName(version), got)
		}
		if got := connect(two, "a.example", "-sess_in", session); got != "Reused" {
			t.Errorf("%s: the session at another gateway is %s", tls.VersionName(version), got)
		}
		if got := connect(one, "b.example", "-sess_in", session); got != "New" {
			t.Errorf("%s: the session under another name is %s", tls.VersionName(version), got)
		}
	}
}

// sClient shakes hands and says whether the session is New or Reused. It stays
// until there is a session on disk.
func sClient(t *testing.T, openssl, session string, args ...string) string {
	t.Helper()
	cmd := exec.Command(openssl, append([]string{"s_client"}, args...)...)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	must(t, cmd.Start())
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	said := ""
	for lines := bufio.NewScanner(out); said == "" && lines.Scan(); {
		if word, _, ok := strings.Cut(lines.Text(), ", TLSv1."); ok {
			said = word
		}
	}
	if said == "" {
		_ = cmd.Wait()
		t.Fatalf("openssl s_client %v: %s", args, complaint.String())
	}
	eventually(t, "a session ticket", func() bool { info, err := os.Stat(session); return err == nil && info.Size() > 0 })
	must(t, in.Close())
	_ = cmd.Wait() // its status says how the connection ended
	return said
}
