package edge

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/wire"
	"github.com/queen-mq/queen-edge/tenancy"
)

// login brings the connection to a proved Scope: by SASL, or, with SASL off, by
// the gateway's own token. Everything happens before one deadline.
func (c *conn) login() error {
	until := c.accepted.Add(c.srv.cfg.LoginTimeout)
	ctx, cancel := context.WithDeadline(c.entry, until)
	defer cancel()
	c.in.until = until
	defer func() { c.in.until = time.Time{} }()
	if !c.api.Login.Enabled() {
		return c.loginOwn(ctx)
	}
	for range c.srv.cfg.Limits.PreauthFrames {
		if err := c.loginFrame(ctx); err != nil {
			return c.loginError(err)
		}
		if c.api.Proved() {
			return nil
		}
		if refusal, refused := c.api.Refused(); refused {
			c.linger(c.srv.cfg.Limits.RefusalHold)
			return wire.Closing(wire.LoginRefused, errors.New(refusal.Log))
		}
	}
	return wire.Closing(wire.LoginFrames, nil)
}

// loginEnded is the one place where a login's outcome is known: the first of the
// connection, a later one (KIP-368, then the worker calls it), and that of a
// listener without SASL.
func (c *conn) loginEnded(e api.LoginEnd) {
	c.srv.logins.add(e)
	c.auditLogin(e)
}

// loginOwn proves QUEEN_TOKEN for a listener without SASL.
//
// Clients speak first. Who says nothing may be a balancer that only looks, and
// costs no call.
func (c *conn) loginOwn(ctx context.Context) error {
	if err := c.awaitRequest(); err != nil {
		return c.loginError(err)
	}
	outcome, err := c.proveOwn(ctx)
	c.loginEnded(api.LoginEnd{Outcome: outcome})
	return err
}

func (c *conn) proveOwn(ctx context.Context) (api.LoginOutcome, error) {
	proof, err := c.srv.verify.Verify(ctx, tenancy.NewClaim(c.srv.cfg.Token, c.api.Lane.Host()))
	switch {
	case err != nil && api.Refuses(err):
		return api.LoginUnknown, wire.Closing(wire.LoginRefused, err)
	case err != nil:
		return api.LoginUnsure, wire.Closing(wire.LoginUnsure, err)
	}
	if err := c.promote(proof.Scope, proof.Checked); err != nil {
		return api.LoginNoRoom, err
	}
	c.srv.handlers.Prove(c.api, proof.Scope)
	return api.LoginOK, nil
}

// loginFrame reads and answers one frame of the login.
func (c *conn) loginFrame(ctx context.Context) error {
	raw := c.api.Login.ExpectsRaw()
	f, err := c.readLoginFrame(raw)
	if err != nil {
		return err
	}
	defer c.release(&f)
	out := c.srv.answers.Get()
	defer c.srv.answers.Put(out)
	if raw || f.req.BringsToken() {
		defer c.watchLeaving()()
	}
	if raw {
		*out, err = c.srv.handlers.LoginRaw(ctx, c.api, *f.buf, *out)
	} else {
		*out, err = c.srv.handlers.Serve(c.traced(ctx, &f.req), c.api, f.req, *out)
	}
	if err != nil {
		return err
	}
	return c.write(*out)
}

// checkPatience is how long a login takes at most where nothing is in its way.
const checkPatience = 250 * time.Millisecond

// watchLeaving begins to look whether the client is still there if its login
// takes long: nobody reads meanwhile, and a login that waits at a brake holds a
// place in its line. What comes instead of an end is the next request's first
// byte. The function it returns ends that; it must be called before anything is
// read again.
func (c *conn) watchLeaving() (stop func()) {
	if c.hasFirst || c.br.Buffered() > 0 {
		return func() {} // it has sent more than it was asked for
	}
	watched := make(chan struct{})
	timer := time.AfterFunc(checkPatience, func() {
		defer close(watched)
		c.awaitLeaving()
	})
	return func() {
		if timer.Stop() {
			return
		}
		for {
			c.poke() // again: it may just be about to set its own deadline
			select {
			case <-watched:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// awaitLeaving waits for a byte, or for the end that the client makes of its
// connection.
func (c *conn) awaitLeaving() {
	if c.nc.SetReadDeadline(c.in.until) != nil {
		return
	}
	_, err := io.ReadFull(c.nc, c.first[:])
	switch {
	case err == nil:
		c.hasFirst = true
	case !isTimeout(err):
		c.end(streamError(err, true))
	}
}

// loginError names what an ended login was: a refusal that the client was told
// and did not answer, silence until the deadline, or the reason it came with.
func (c *conn) loginError(err error) error {
	if sentence, told := c.api.Login.Told(); told {
		return wire.Closing(wire.LoginRefused, errors.New(sentence))
	}
	reason := closeOf(err)
	if heldBack(reason.Reason) {
		c.linger(c.srv.cfg.Limits.LimitHold)
	}
	if reason.Reason == wire.ClientSlow || reason.Reason == wire.ClientIdle {
		return wire.Closing(wire.LoginTimeout, nil)
	}
	return err
}

// linger keeps the socket open for a while, so that a client reads what was
// written before it meets the close: some clients lose an answer that arrives
// with the end of the stream, and bytes of theirs left unread would turn the
// close into a reset. What they send is thrown away.
func (c *conn) linger(d time.Duration) {
	_ = c.nc.SetReadDeadline(time.Now().Add(d))
	_, _ = io.CopyN(io.Discard, c.nc, lingerBytes)
}

// lingerBytes bounds what a refused client may still send.
const lingerBytes = 1 << 20
