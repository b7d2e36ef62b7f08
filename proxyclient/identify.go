package proxyclient

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-faster/jx"
	"github.com/queen-mq/queen-edge/tenancy"
)

const maxClusterID = 128 // §2.6

// Identify asks /auth/me who the claim's bearer is (§2.6). A nil error is a
// settled answer, "no identity" (an empty ClusterID) included: an answer
// without an acceptable id, one that does not parse, or 401, 403, 404, 405.
// An error means "not settled": ask again later.
func (c *Client) Identify(ctx context.Context, claim tenancy.Claim) (tenancy.Identity, error) {
	var who tenancy.Identity
	var can tenancy.Capabilities
	t := identifyTarget()
	t.head = func(h http.Header) { can = capabilities(h) }
	err := c.ask(ctx, t, claim, nil, maxAnswer, false, func(body []byte) error {
		who = decodeIdentity(body)
		return nil
	})
	if e, ok := AsError(err); ok && e.Kind == KindStatus {
		switch e.Status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
			return tenancy.Identity{}, nil
		}
	}
	who.Capabilities = can
	return who, err
}

// decodeIdentity takes what it can use. Members of an unexpected type are not
// there; a body that is no JSON object says nothing.
func decodeIdentity(body []byte) tenancy.Identity {
	var who tenancy.Identity
	err := object(body, func(d *jx.Decoder, key []byte) error {
		name := string(key) // key aliases nothing that the value's raw text outlives
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		switch name {
		case "acting_cluster":
			who.ClusterID = clusterID(raw)
		case "scopes":
			who.Rights = rights(raw)
		case "expires_at":
			who.ExpiresAt = expiry(raw)
		}
		return nil
	})
	if err != nil {
		return tenancy.Identity{}
	}
	return who
}

func clusterID(raw jx.Raw) string {
	id := ""
	err := object(raw, func(d *jx.Decoder, key []byte) (err error) {
		if string(key) != "id" {
			return d.Skip()
		}
		id, err = d.Str()
		return err
	})
	id = strings.TrimSpace(id)
	if err != nil || len(id) > maxClusterID || strings.ContainsFunc(id, notInID) {
		return ""
	}
	return id
}

func notInID(r rune) bool {
	return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("._:-", r)
}

// rights are known only when all four are there as booleans: a cell that names
// its scopes otherwise must not be read as having granted none.
func rights(raw jx.Raw) tenancy.Rights {
	r := tenancy.Rights{}
	seen := [4]bool{}
	err := object(raw, func(d *jx.Decoder, key []byte) (err error) {
		switch string(key) {
		case "produce":
			seen[0] = true
			r.Produce, err = d.Bool()
		case "consume":
			seen[1] = true
			r.Consume, err = d.Bool()
		case "admin":
			seen[2] = true
			r.Admin, err = d.Bool()
		case "read":
			seen[3] = true
			r.Read, err = d.Bool()
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil || seen != [4]bool{true, true, true, true} {
		return tenancy.Rights{}
	}
	r.Known = true
	return r
}

// expiry reads an RFC 3339 text or epoch milliseconds; anything else, and a
// time at or before the epoch, is no end.
func expiry(raw jx.Raw) time.Time {
	d := jx.DecodeBytes(raw)
	switch d.Next() {
	case jx.Number:
		if ms, err := d.Int64(); err == nil && ms > 0 {
			return time.UnixMilli(ms)
		}
	case jx.String:
		text, err := d.Str()
		if err != nil {
			return time.Time{}
		}
		if at, err := time.Parse(time.RFC3339, text); err == nil && at.UnixMilli() > 0 {
			return at
		}
	}
	return time.Time{}
}
