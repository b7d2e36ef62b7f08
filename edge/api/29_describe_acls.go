package api

// DescribeACLs (29), versions 1–3 (KIP-140, KIP-290). There is no authoriser: what
// a credential may do is the cell's to say. Always 54, with the sentence that
// tools compare, which has no full stop.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handlers) describeACLs(_ context.Context, _ Call, req *kmsg.DescribeACLsRequest) (*kmsg.DescribeACLsResponse, error) {
	resp := req.ResponseKind().(*kmsg.DescribeACLsResponse)
	resp.ErrorCode, resp.ErrorMessage = kerr.SecurityDisabled.Code, textPtr("No Authorizer is configured on the broker")
	return resp, nil
}
