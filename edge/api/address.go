package api

// host is what a client is told to dial, in every answer that names a broker:
// the advertised host, or the name that its connection's lane has (B5).
func (h *Handlers) host(call Call) string {
	if h.cfg.Host != "" {
		return h.cfg.Host
	}
	return call.Conn.Lane.Advertised()
}
