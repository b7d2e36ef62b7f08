package api

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/queen-mq/queen-edge/sasl"
	"github.com/queen-mq/queen-edge/tenancy"
)

// refuseGroup is what every request that names a group is refused with before
// anything else is looked at; nil if it is not. A credential that is known to
// lack consume is refused without a call (B4).
func refuseGroup(s tenancy.Scope, groupID string) *kerr.Error {
	if !legalGroupID(groupID) {
		return kerr.InvalidGroupID
	}
	return refuseConsumer(s)
}

// refuseConsumer is the same for requests that name no group.
func refuseConsumer(s tenancy.Scope) *kerr.Error {
	if r := s.Rights(); r.Known && !r.Consume {
		return kerr.GroupAuthorizationFailed
	}
	return nil
}

// clientName is the client id as it may be shown to the tenant's other clients:
// people do put the key into the wrong field (B4).
func clientName(call Call) string {
	if sasl.SafeLabel(call.ClientID, call.Scope.Bearer()) == tenancy.Redacted {
		return tenancy.Redacted
	}
	return call.ClientID
}

// codeOf is a refusal on the wire; none is 0.
func codeOf(e *kerr.Error) int16 {
	if e == nil {
		return 0
	}
	return e.Code
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
