package api

import (
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// reloginPause is the least time between two logins of one connection (KIP-368).
const reloginPause = time.Second

// mayRenew reports that the connection may log in again: its login has an end,
// and was not made just now.
func (h *Handlers) mayRenew(c *Conn) bool {
	return c.proved && !c.Ends().IsZero() && h.cfg.Clock().Sub(c.since) >= reloginPause
}

// sessionEnd is when a login that is made now ends: with its credential, else
// after the configured lifetime; zero: never.
func (h *Handlers) sessionEnd(s tenancy.Scope, now time.Time) time.Time {
	end := s.Expires()
	if end.IsZero() && h.cfg.SessionLife > 0 {
		end = now.Add(h.cfg.SessionLife)
	}
	return end
}

// lasts notes when a login was made and when it ends.
func (c *Conn) lasts(now, end time.Time) {
	c.since = now
	if end.IsZero() {
		c.ends.Store(0)
		return
	}
	c.ends.Store(max(end.UnixMilli(), 1))
}

// lifetime is what a client is told of it, in milliseconds; 0: no end.
func (c *Conn) lifetime(now time.Time) int64 {
	end := c.ends.Load()
	if end == 0 {
		return 0
	}
	return max(end-now.UnixMilli(), 1)
}

// renew goes on with another credential, or the same once more. Another tenant's
// is refused in the words that a bad one is: what the connection holds is its
// tenant's.
func (c *Conn) renew(s tenancy.Scope, checked, now, end time.Time) *refusedLogin {
	if s.ID() != c.scope.ID() {
		no := unknownCredential(c.Login.Mechanism())
		no.outcome = LoginOtherTenant // the client is not told: nothing is enumerated
		return no
	}
	c.scope = s
	c.Login.Succeeded()
	c.lasts(now, end)
	if c.Renewed != nil {
		c.Renewed(s, checked)
	}
	return nil
}
