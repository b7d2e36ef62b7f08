package api

// ApiVersions (18), versions 0–4 (KIP-511, KIP-35). The body is the table. A
// version we do not know is answered in the shape of version 0 with error 35 and
// ApiVersions' own window, body undecoded, so that the client can ask again. A
// software name or version that KIP-511 does not allow is 42 without a table. No
// features are announced: neither transaction.version nor group.version (B1).

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const apiVersionsKey = 18

// isSoftwareText reports what a client may call itself and its version (KIP-511):
// letters and digits, and between them also dots and hyphens.
func isSoftwareText(s string) bool {
	for i := range len(s) {
		between := i > 0 && i < len(s)-1
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case between && (c == '.' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}

func (h *Handlers) apiVersions(_ context.Context, _ *Conn, req *kmsg.ApiVersionsRequest) (*kmsg.ApiVersionsResponse, error) {
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	if req.Version >= 3 && !(isSoftwareText(req.ClientSoftwareName) && isSoftwareText(req.ClientSoftwareVersion)) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp, nil
	}
	resp.ApiKeys = h.windows // of all answers: nobody changes it
	return resp, nil
}

// windows are the table as clients are told it.
func windows(table []Row) []kmsg.ApiVersionsResponseApiKey {
	all := make([]kmsg.ApiVersionsResponseApiKey, len(table))
	for i := range table {
		all[i] = window(&table[i])
	}
	return all
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
