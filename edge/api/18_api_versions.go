package api

// ApiVersions (18), versions 0–4 (KIP-511, KIP-35). The body is the table. A
// version we do not know is answered in the shape of version 0 with error 35 and
// ApiVersions' own window, body undecoded, so that the client can ask again. A
// software name or version that KIP-511 does not allow is 42 without a table. No
// features are announced: neither transaction.version nor group.version (B1).

import (
	"context"
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const apiVersionsKey = 18

// softwareText is what a client may call itself and its version (KIP-511).
var softwareText = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?$`)

func (h *Handlers) apiVersions(_ context.Context, _ *Conn, req *kmsg.ApiVersionsRequest) (*kmsg.ApiVersionsResponse, error) {
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	if req.Version >= 3 && !(softwareText.MatchString(req.ClientSoftwareName) && softwareText.MatchString(req.ClientSoftwareVersion)) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp, nil
	}
	for i := range h.table {
		resp.ApiKeys = append(resp.ApiKeys, window(&h.table[i]))
	}
	return resp, nil
}

func (h *Handlers) unknownApiVersions() *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	resp.ApiKeys = append(resp.ApiKeys, window(h.row(apiVersionsKey)))
	return resp
}

func window(r *Row) kmsg.ApiVersionsResponseApiKey {
	k := kmsg.NewApiVersionsResponseApiKey()
	k.ApiKey, k.MinVersion, k.MaxVersion = r.Key, r.Min, r.Max
	return k
}
