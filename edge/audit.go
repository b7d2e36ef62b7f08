package edge

import (
	"github.com/queen-mq/queen-edge/edge/api"
	"github.com/queen-mq/queen-edge/edge/audit"
	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

// auditing has the connection's logins and deeds written down, where there is an
// audit log.
func (c *conn) auditing() {
	if c.srv.audit != nil {
		c.api.Deed = c.auditDeed
	}
}

// who begins an event with what is known of the client.
func (c *conn) who(what string) audit.Event {
	e := audit.Event{What: what, Label: c.api.User, Address: c.client.String(), Lane: c.api.Lane.Name()}
	if c.promoted {
		e.Tenant = c.scope.ID().String()
	}
	return e
}

func (c *conn) auditLogin(end api.LoginEnd) {
	if c.srv.audit == nil {
		return
	}
	e := c.who(audit.LoginRefused)
	if end.Outcome == api.LoginOK {
		e.What = audit.LoginOK
	} else {
		e.Reason = end.Outcome.String()
	}
	e.Mechanism, e.Again = string(end.Mechanism), end.Again
	c.srv.audit.Add(e)
}

// auditRevoked is for a connection that has ended because its token has.
func (c *conn) auditRevoked() {
	if c.srv.audit != nil {
		c.srv.audit.Add(c.who(audit.Revoked))
	}
}

func (c *conn) auditDeed(d api.Deed) {
	e := c.who(nameOf(d.Did))
	e.API, e.Topic, e.Group, e.Partitions = d.API, c.shown(d.Topic), c.shown(d.Group), d.Partitions
	for _, name := range d.Configs {
		e.Configs = append(e.Configs, c.shown(name))
	}
	e.Unknown, e.Reason = d.Unknown, d.Code
	c.srv.audit.Add(e)
}

// shown is a name of the client's as it may be written down: people put the key
// into any field (B4).
func (c *conn) shown(name string) string {
	if sasl.SafeLabel(name, c.api.Scope().Bearer()) == tenancy.Redacted {
		return tenancy.Redacted
	}
	return name
}

func nameOf(a api.Act) string {
	return [...]string{
		api.TopicCreated: audit.TopicCreated, api.TopicDeleted: audit.TopicDeleted, api.PartitionsCreated: audit.PartitionsCreated,
		api.ConfigAltered: audit.ConfigAltered, api.GroupDeleted: audit.GroupDeleted, api.OffsetsDeleted: audit.OffsetsDeleted,
	}[a]
}

func (s *Server) tellAudit(tell tell) {
	var written, dropped int64
	if s.audit != nil {
		written, dropped = s.audit.Counts()
	}
	tell(float64(written), "written")
	tell(float64(dropped), "dropped")
}
