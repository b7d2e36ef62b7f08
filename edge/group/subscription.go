package group

import (
	"encoding/binary"
	"slices"
)

// consumerType is the protocol type of consumers, whose metadata says what they
// subscribe to.
const consumerType = "consumer"

// topicsOf reads the topics of a ConsumerProtocolSubscription: a version, then
// the topics. What later versions hold comes after them, so none is unknown
// here.
func topicsOf(metadata []byte) (topics []string, ok bool) {
	const versionBytes, countBytes, lengthBytes = 2, 4, 2
	if len(metadata) < versionBytes+countBytes {
		return nil, false
	}
	n := int32(binary.BigEndian.Uint32(metadata[versionBytes:]))
	rest := metadata[versionBytes+countBytes:]
	if n < 0 || int64(n)*lengthBytes > int64(len(rest)) {
		return nil, false
	}
	topics = make([]string, 0, n)
	for range n {
		if len(rest) < lengthBytes {
			return nil, false
		}
		l := int(int16(binary.BigEndian.Uint16(rest)))
		if rest = rest[lengthBytes:]; l < 0 || l > len(rest) {
			return nil, false
		}
		topics = append(topics, string(rest[:l]))
		rest = rest[l:]
	}
	return topics, true
}

// subscribed reports whether a member of a consumer group is subscribed to a
// topic. What cannot be read may be, and so is: unread.
func (s *state) subscribed(topic string) (yes, unread bool) {
	if s.protocolType != consumerType {
		return false, false
	}
	for _, m := range s.members {
		for _, p := range m.protocols {
			topics, ok := topicsOf(p.Metadata)
			if slices.Contains(topics, topic) {
				return true, false
			}
			unread = unread || !ok
		}
	}
	return unread, unread
}
