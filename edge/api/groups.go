package api

import (
	"github.com/twmb/franz-go/pkg/kerr"

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
