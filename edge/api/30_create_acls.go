package api

// CreateACLs (30), versions 1–3 (KIP-140, KIP-290). Each creation is answered 54:
// see DescribeACLs. The sentence ends with a full stop, as Apache Kafka's does
// here.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const sayNoAuthorizer = "No Authorizer is configured."

func (h *Handlers) createACLs(_ context.Context, _ Call, req *kmsg.CreateACLsRequest) (*kmsg.CreateACLsResponse, error) {
	resp := req.ResponseKind().(*kmsg.CreateACLsResponse)
	resp.Results = make([]kmsg.CreateACLsResponseResult, len(req.Creations))
	message := textPtr(sayNoAuthorizer)
	for i := range resp.Results {
		r := &resp.Results[i]
		r.Default()
		r.ErrorCode, r.ErrorMessage = kerr.SecurityDisabled.Code, message
	}
	return resp, nil
}
