package proxy

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-faster/jx"
)

// asked is what the proxy looks for in a configure: the queue, and the
// retention it is to have.
type asked struct {
	dec     jx.Decoder
	queue   string
	seconds [2]float64 // by retentionOptions; 0: not named
	broken  bool
}

// retentionOptions are held against the plan (cell-http §3.2).
func retentionOptions() [2]string {
	return [...]string{"retentionSeconds", "completedRetentionSeconds"}
}

// admitConfigure holds a configure against registry and retention. A body that
// is not understood is the broker's to refuse.
func (p *Proxy) admitConfigure(c *call, body []byte) (admission, *refusal) {
	var in asked
	in.read(body)
	if in.broken || in.queue == "" {
		return admission{}, nil
	}
	held, f := p.admitQueue(c, in.queue)
	if f != nil {
		return held, f
	}
	most, bounded := c.cluster.Limits.MaxRetentionSeconds.Value()
	for i, name := range retentionOptions() {
		if !bounded || in.seconds[i] <= most {
			continue
		}
		f := refuse(http.StatusForbidden, "quota_exceeded", fmt.Sprintf("%s of %ss exceeds the plan's max_retention_seconds (%ss)",
			name, strconv.FormatFloat(in.seconds[i], 'f', -1, 64), c.cluster.Limits.MaxRetentionSeconds))
		if f = p.unlessShadow(c, f); f != nil {
			return held, f
		}
	}
	return held, nil
}

// read finds what is asked for, at either level; the largest of a name counts,
// so that saying it twice gets nobody around the plan.
func (a *asked) read(body []byte) {
	a.dec.ResetBytes(body)
	if a.dec.Next() != jx.Object {
		a.broken = true
		return
	}
	a.broken = a.object(true) != nil
}

// object reads the members of the object that is next.
func (a *asked) object(top bool) error {
	members, err := a.dec.ObjIter()
	if err != nil {
		return err
	}
	for members.Next() {
		switch name := string(members.Key()); {
		case top && name == "queue":
			a.queue, _, err = stringValue(&a.dec)
		case top && name == "options" && a.dec.Next() == jx.Object:
			err = a.object(false)
		case name == retentionOptions()[0]:
			err = a.number(&a.seconds[0])
		case name == retentionOptions()[1]:
			err = a.number(&a.seconds[1])
		default:
			err = a.dec.Skip()
		}
		if err != nil {
			return err
		}
	}
	return members.Err()
}

// number reads a number, also one that is written as a string.
func (a *asked) number(into *float64) error {
	text := ""
	if a.dec.Next() == jx.String {
		s, err := a.dec.Str()
		if err != nil {
			return err
		}
		text = s
	} else {
		raw, err := a.dec.Raw()
		if err != nil {
			return err
		}
		text = string(raw)
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		*into = max(*into, n)
	}
	return nil
}
