package group

// describe is the group as DescribeGroups shows it. The protocol, what members
// said for it and what they were assigned are settled only while it is stable.
func (s *state) describe() Description {
	d := Description{State: s.phase, ProtocolType: s.protocolType, Members: make([]MemberDescription, 0, len(s.members))}
	stable := s.phase == Stable
	if stable {
		d.Protocol = s.protocol
	}
	for _, m := range s.members {
		md := MemberDescription{ID: m.id, InstanceID: m.instance, ClientID: m.clientID, Host: m.host}
		if stable {
			md.Metadata, md.Assignment = m.metadata(s.protocol), m.assignment
		}
		d.Members = append(d.Members, md)
	}
	return d
}
