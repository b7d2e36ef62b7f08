package tenancy

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"time"
)

// expiry is when a bearer that is a JWT ends by its own word (exp, RFC 7519
// §4.1.4); zero for anything else. Nothing is verified: the cell has done that,
// and who lies about it only cuts its own session short.
func (s Secret) expiry() time.Time {
	parts := strings.Split(s.Reveal(), ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp *float64 `json:"exp"`
	}
	if json.Unmarshal(body, &claims) != nil || claims.Exp == nil {
		return time.Time{}
	}
	const last = 253402300799 // the year 9999
	exp := min(*claims.Exp, last)
	if exp <= 0 {
		return time.Unix(1, 0) // long over, and not "no end"
	}
	whole, part := math.Modf(exp)
	return time.Unix(int64(whole), int64(part*1e9))
}
