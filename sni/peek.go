package sni

import "encoding/binary"

// FromHello is the server name of a TLS client hello (RFC 8446 §4.1.2, RFC 6066
// §3), of which b is the beginning of the stream. It is for telling why a hello
// was refused that the TLS library would not read: what is not whole, or is in
// more than one record, has no name here.
func FromHello(b []byte) (serverName string, ok bool) {
	const handshakeRecord, clientHello, serverNameExtension, hostName = 22, 1, 0, 0
	p := peeker{b: b, ok: true}
	if p.number(1) != handshakeRecord {
		return "", false
	}
	p.skip(2)
	p = p.part(2)
	if p.number(1) != clientHello {
		return "", false
	}
	p = p.part(3)
	p.skip(2 + 32) // version, random
	p.part(1)      // session id
	p.part(2)      // cipher suites
	p.part(1)      // compression methods
	for ext := p.part(2); ext.ok && len(ext.b) > 0; {
		kind, body := ext.number(2), ext.part(2)
		if kind != serverNameExtension {
			continue
		}
		for names := body.part(2); names.ok && len(names.b) > 0; {
			kind, name := names.number(1), names.part(2)
			if kind == hostName && name.ok {
				return string(name.b), true
			}
		}
	}
	return "", false
}

// peeker reads from the front of b for as long as there is enough of it.
type peeker struct {
	b  []byte
	ok bool
}

func (p *peeker) take(n int) []byte {
	if !p.ok || n > len(p.b) {
		p.b, p.ok = nil, false
		return nil
	}
	head := p.b[:n]
	p.b = p.b[n:]
	return head
}

func (p *peeker) skip(n int) { p.take(n) }

// number is a big-endian number of 1 to 3 bytes; 0 where there is none.
func (p *peeker) number(size int) int {
	var wide [4]byte
	copy(wide[4-size:], p.take(size))
	return int(binary.BigEndian.Uint32(wide[:]))
}

// part is what stands behind its length, which has 1 to 3 bytes.
func (p *peeker) part(size int) peeker {
	head := p.take(p.number(size))
	return peeker{b: head, ok: p.ok}
}
