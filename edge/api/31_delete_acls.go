package api

// DeleteACLs (31), versions 1–3 (KIP-140, KIP-290). Each filter is answered 54:
// see DescribeACLs.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handlers) deleteACLs(_ context.Context, _ Call, req *kmsg.DeleteACLsRequest) (*kmsg.DeleteACLsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DeleteACLsResponse)
	resp.Results = make([]kmsg.DeleteACLsResponseResult, len(req.Filters))
	message := textPtr(sayNoAuthorizer)
	for i := range resp.Results {
		r := &resp.Results[i]
		r.Default()
		r.ErrorCode, r.ErrorMessage = kerr.SecurityDisabled.Code, message
	}
	return resp, nil
}
