package api

// DescribeCluster (60), versions 0–2 (KIP-700, KIP-919, KIP-1073). One broker;
// the controller is that broker. Endpoint type 2 (controllers) and types nobody
// knows are refused as an Apache broker refuses them: 114 and 115. Authorized operations stay at "omitted".

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	endpointBrokers     = 1
	endpointControllers = 2
)

func (h *Handlers) describeCluster(_ context.Context, call Call, req *kmsg.DescribeClusterRequest) (*kmsg.DescribeClusterResponse, error) {
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	if req.Version >= 1 && req.EndpointType != endpointBrokers {
		resp.ErrorCode = kerr.MismatchedEndpointType.Code
		resp.ErrorMessage = textPtr("The request was sent to an endpoint of another type.")
		if req.EndpointType != endpointControllers {
			resp.ErrorCode = kerr.UnsupportedEndpointType.Code
			resp.ErrorMessage = textPtr("There is no endpoint of this type.")
		}
		return resp, nil
	}
	nodes := h.nodes(call)
	resp.ClusterID, resp.ControllerID = nodes.Cluster, nodes.Controller()
	for _, m := range nodes.Members {
		b := kmsg.NewDescribeClusterResponseBroker()
		b.NodeID, b.Host, b.Port = m.ID, m.Host, m.Port
		resp.Brokers = append(resp.Brokers, b)
	}
	return resp, nil
}
