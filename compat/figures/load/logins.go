package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/compat/rig"
)

// logins logs in n times, eight at a time, and closes: TCP, TLS, ApiVersions,
// SaslHandshake, SaslAuthenticate. It writes how many seconds that took, and how
// many of a processor. Of an echo it expects its own frames.
func (l *load) logins(n int, echo bool) error {
	frames := loginFrames(l.token)
	if err := l.loginOnce(frames, echo); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	var next atomic.Int64
	var wg sync.WaitGroup
	began, used := time.Now(), processor()
	errs := make([]error, loginLanes)
	for lane := range errs {
		wg.Go(func() {
			for errs[lane] == nil && next.Add(1) <= int64(n) {
				errs[lane] = l.loginOnce(frames, echo)
			}
		})
	}
	wg.Wait()
	fmt.Println(time.Since(began).Seconds(), processor()-used)
	return errors.Join(errs...)
}

const loginLanes = 8

func loginFrames(token string) [][]byte {
	versions := kmsg.NewPtrApiVersionsRequest()
	versions.Version, versions.ClientSoftwareName, versions.ClientSoftwareVersion = 3, "load", "1"
	hello := kmsg.NewPtrSASLHandshakeRequest()
	hello.Version, hello.Mechanism = 1, "PLAIN"
	authenticate := kmsg.NewPtrSASLAuthenticateRequest()
	authenticate.Version, authenticate.SASLAuthBytes = 1, []byte("\x00load\x00"+token)
	var frames [][]byte
	for _, req := range []kmsg.Request{versions, hello, authenticate} {
		frames = append(frames, rig.Frame(req, 1, "load"))
	}
	return frames
}

func (l *load) loginOnce(frames [][]byte, echo bool) error {
	c, err := l.dialTLS()
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // where it has failed before
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for _, frame := range frames {
		if _, err := c.Write(frame); err != nil {
			return err
		}
		answer, err := rig.ReadFrame(c)
		if err != nil {
			return err
		}
		// All three answers begin with an error code, behind the correlation id.
		if code := answer[4:6]; !echo && (code[0] != 0 || code[1] != 0) {
			return fmt.Errorf("login: an answer has the code %d", code)
		}
	}
	return c.Close()
}

// processor is how many seconds of a processor this process has used.
func processor() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only of an argument that is none
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
