package group

// describe is the group as DescribeGroups shows it. The protocol and what members
// said for it are settled only while it is stable; assignments are those that
// members were told last.
func (s *state) describe() Description {
	d := Description{State: s.phase, ProtocolType: s.protocolType, Members: make([]MemberDescription, 0, len(s.members))}
	stable := s.phase == Stable
	if stable {
		d.Protocol = s.protocol
	}
	for _, m := range s.members {
		md := MemberDescription{ID: m.id, InstanceID: m.instance, ClientID: m.clientID, Host: m.host, Assignment: m.assignment}
		if stable {
			md.Metadata = m.metadata(s.protocol)
		}
		d.Members = append(d.Members, md)
	}
	return d
}
