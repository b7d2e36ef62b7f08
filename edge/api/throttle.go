package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// throttle tells the client to wait where its tenant is over its rate (KIP-219),
// as every response can that has the field at its version. Where the cell asks
// for longer (§12), that stands.
func (c *Conn) throttle(row *Row, req kmsg.Request, resp kmsg.Response) {
	if c.Throttle == nil || !row.Throttled() {
		return
	}
	var named time.Duration
	if r, ok := req.(kmsg.TimeoutRequest); ok {
		named = time.Duration(r.Timeout()) * time.Millisecond
	}
	wait := int32(c.Throttle(named).Milliseconds())
	if r, ok := resp.(interface {
		kmsg.ThrottleResponse
		kmsg.SetThrottleResponse
	}); ok {
		if told, _ := r.Throttle(); wait > told {
			r.SetThrottle(wait)
		}
	}
}
