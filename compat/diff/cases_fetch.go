package main

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// readRef is one partition of a Fetch request.
type readRef struct {
	topic string
	kmsg.FetchRequestTopicPartition
}

func readAt(topic string, partition int32, offset int64) readRef {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	return readRef{topic, p}
}

// fetchOf makes a Fetch request that does not wait; neighbours with one topic
// share its entry.
func fetchOf(parts ...readRef) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch = 10<<20, -1
	for _, p := range parts {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != p.topic {
			t := kmsg.NewFetchRequestTopic()
			t.Topic = p.topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, p.FetchRequestTopicPartition)
	}
	return req
}

func (s *suite) fetch() {
	for _, v := range every(s.row(1)) {
		s.fetchGood(v)
		s.fetchSessions(v)
	}
	for _, v := range ends(s.row(1)) {
		s.fetchWhere(v)
		s.fetchLimits(v)
		s.fetchEpochs(v)
	}
}

func (s *suite) fetchGood(v int16) {
	row := s.row(1)
	for _, offset := range []int64{0, 3, 5, 9, 10} {
		s.add(row, v, "from "+strconv.FormatInt(offset, 10), ask(fetchOf(readAt(readTopic, 0, offset)))...)
	}
	s.add(row, v, "compressed", ask(fetchOf(readAt(readTopic, 3, 0)))...)
	s.add(row, v, "compressed, from the middle", ask(fetchOf(readAt(readTopic, 3, 2)))...)
	s.add(row, v, "two partitions", ask(fetchOf(readAt(readTopic, 0, 0), readAt(readTopic, 3, 0)))...)
	s.add(row, v, "no topics", ask(fetchOf())...)
	for _, level := range []int8{1, 2, -1, 127} {
		req := fetchOf(readAt(readTopic, 0, 0))
		req.IsolationLevel = level
		s.add(row, v, "isolation level "+strconv.Itoa(int(level)), ask(req)...)
	}
}

// fetchWhere are bad places.
func (s *suite) fetchWhere(v int16) {
	row := s.row(1)
	try := func(name string, parts ...readRef) { s.add(row, v, name, ask(fetchOf(parts...))...) }
	for _, offset := range []int64{-1, -2, -3, -1 << 63, 11, 1000, 1<<63 - 1} {
		try("offset "+strconv.FormatInt(offset, 10), readAt(readTopic, 0, offset))
	}
	try("offset 1 of an empty partition", readAt(readTopic, 2, 1))
	try("partition -1", readAt(readTopic, -1, 0))
	try("partition 4", readAt(readTopic, 4, 0))
	try("partition huge", readAt(readTopic, 1<<31-1, 0))
	try("a missing topic", readAt(missing, 0, 0))
	try("a hidden topic", readAt(hiddenTopic, 0, 0))
	try("the offsets topic", readAt("__consumer_offsets", 0, 0))
	try("one good, one missing", readAt(readTopic, 0, 0), readAt(missing, 0, 0))
	try("one good, one out of range", readAt(readTopic, 0, 0), readAt(readTopic, 3, 99))
	try("a partition twice", readAt(readTopic, 0, 0), readAt(readTopic, 0, 5))
	try("a topic twice", readAt(readTopic, 0, 0), readAt(missing, 0, 0), readAt(readTopic, 3, 0))
	for _, kind := range illegalNames() {
		try("illegal "+kind, readAt(illegal()[kind], 0, 0))
	}
	none := fetchOf(readAt(readTopic, 0, 0))
	none.Topics[0].Partitions = nil
	s.add(row, v, "a topic without partitions", ask(none)...)
}

// fetchLimits are bytes and times.
func (s *suite) fetchLimits(v int16) {
	row := s.row(1)
	for _, c := range []struct {
		name                   string
		partition, most, least int32
		wait                   int32
		at                     readRef
	}{
		{"partition bytes 1", 1, 1 << 20, 0, 0, readAt(readTopic, 0, 0)},
		{"partition bytes 0", 0, 1 << 20, 0, 0, readAt(readTopic, 0, 0)},
		{"partition bytes -1", -1, 1 << 20, 0, 0, readAt(readTopic, 0, 0)},
		{"bytes 1", 1 << 20, 1, 0, 0, readAt(readTopic, 0, 0)},
		{"bytes 0", 1 << 20, 0, 0, 0, readAt(readTopic, 0, 0)},
		{"bytes -1", 1 << 20, -1, 0, 0, readAt(readTopic, 0, 0)},
		{"least bytes -1", 1 << 20, 1 << 20, -1, 0, readAt(readTopic, 0, 0)},
		{"least bytes huge", 1 << 20, 1 << 20, 1<<31 - 1, 50, readAt(readTopic, 0, 0)},
		{"wait at the end", 1 << 20, 1 << 20, 1, 50, readAt(readTopic, 0, 10)},
		{"wait -1", 1 << 20, 1 << 20, 1, -1, readAt(readTopic, 0, 10)},
		{"large, bytes 1", 1 << 20, 1, 0, 0, readAt(readTopic, 1, 0)},
		{"large, partition bytes 60000", 60_000, 1 << 20, 0, 0, readAt(readTopic, 1, 0)},
		{"large, bytes 110000", 1 << 20, 110_000, 0, 0, readAt(readTopic, 1, 0)},
	} {
		c.at.PartitionMaxBytes = c.partition
		req := fetchOf(c.at)
		req.MaxBytes, req.MinBytes, req.MaxWaitMillis = c.most, c.least, c.wait
		s.add(row, v, c.name, ask(req)...)
	}
	both := fetchOf(readAt(readTopic, 1, 0), readAt(readTopic, 0, 0))
	both.MaxBytes = 1
	s.add(row, v, "two partitions, bytes 1", ask(both)...)
	for _, replica := range []int32{0, 1, -2, -3} {
		req := fetchOf(readAt(readTopic, 0, 0))
		req.ReplicaID = replica
		if v < 15 {
			s.add(row, v, "replica "+strconv.Itoa(int(replica)), ask(req)...)
		}
	}
	if v >= 11 {
		req := fetchOf(readAt(readTopic, 0, 0))
		req.Rack = "rack"
		s.add(row, v, "a rack", ask(req)...)
	}
}

func (s *suite) fetchEpochs(v int16) {
	row := s.row(1)
	if v < 9 {
		return
	}
	for _, epoch := range []int32{0, 1, 99, -2} {
		p := readAt(readTopic, 0, 0)
		p.CurrentLeaderEpoch = epoch
		s.add(row, v, "leader epoch "+strconv.Itoa(int(epoch)), ask(fetchOf(p))...)
	}
	if v < 12 {
		return
	}
	for _, epoch := range []int32{0, 1, -2} {
		p := readAt(readTopic, 0, 5)
		p.LastFetchedEpoch = epoch
		s.add(row, v, "last fetched epoch "+strconv.Itoa(int(epoch)), ask(fetchOf(p))...)
	}
	cluster := fetchOf(readAt(readTopic, 0, 0))
	cluster.ClusterID = kmsg.StringPtr("another")
	s.add(row, v, "another cluster id", ask(cluster)...)
}

func (s *suite) fetchSessions(v int16) {
	row := s.row(1)
	if v < 7 {
		return
	}
	session := func(id, epoch int32, parts ...readRef) *kmsg.FetchRequest {
		req := fetchOf(parts...)
		req.SessionID, req.SessionEpoch = id, epoch
		return req
	}
	one := readAt(readTopic, 0, 0)
	s.add(row, v, "a new session", ask(session(0, 0, one))...)
	s.add(row, v, "a new session of nothing", ask(session(0, 0))...)
	s.add(row, v, "session 0, epoch 5", ask(session(0, 5, one))...)
	s.add(row, v, "session 0, epoch -2", ask(session(0, -2, one))...)
	s.add(row, v, "an unknown session", ask(session(12345, 5, one))...)
	s.add(row, v, "an unknown session, epoch 0", ask(session(12345, 0, one))...)
	s.add(row, v, "an unknown session, epoch -1", ask(session(12345, -1, one))...)
	s.add(row, v, "a negative session", ask(session(-5, 3, one))...)
	forget := session(0, -1, one)
	f := kmsg.NewFetchRequestForgottenTopic()
	f.Topic, f.Partitions = readTopic, []int32{0}
	forget.ForgottenTopics = append(forget.ForgottenTopics, f)
	s.add(row, v, "forgotten topics without a session", ask(forget)...)
	next := step{req: session(0, 1, one), then: func(before kmsg.Response, req kmsg.Request) {
		req.(*kmsg.FetchRequest).SessionID = before.(*kmsg.FetchResponse).SessionID
	}}
	s.add(row, v, "a session goes on", step{req: session(0, 0, one)}, next)
}

// timeRef is one partition of a ListOffsets request.
type timeRef struct {
	topic string
	kmsg.ListOffsetsRequestTopicPartition
}

func timeOf(topic string, partition int32, at int64) timeRef {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, at
	return timeRef{topic, p}
}

func listOf(parts ...timeRef) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	for _, p := range parts {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != p.topic {
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, p.ListOffsetsRequestTopicPartition)
	}
	return req
}

func (s *suite) listOffsets() {
	row := s.row(2)
	for _, v := range every(row) {
		try := func(name string, parts ...timeRef) { s.add(row, v, name, ask(listOf(parts...))...) }
		for _, at := range []int64{-1, -2, -3, -4, -5, -6, -7, -1 << 63, 0, 1} {
			try("time "+strconv.FormatInt(at, 10), timeOf(readTopic, 0, at))
			try("time "+strconv.FormatInt(at, 10)+" of an empty partition", timeOf(readTopic, 2, at))
		}
		try("the time of the first", timeOf(readTopic, 0, s.now))
		try("a time between", timeOf(readTopic, 0, s.now+500))
		try("a time in the end", timeOf(readTopic, 0, s.now+24*3_600_000))
		try("two partitions", timeOf(readTopic, 0, -1), timeOf(readTopic, 3, -2))
		try("no topics")
		try("partition -1", timeOf(readTopic, -1, -1))
		try("partition 4", timeOf(readTopic, 4, -1))
		try("partition huge", timeOf(readTopic, 1<<31-1, -2))
		try("a missing topic", timeOf(missing, 0, -1))
		try("a missing topic, time -3", timeOf(missing, 0, -3))
		try("a hidden topic", timeOf(hiddenTopic, 0, -1))
		try("one good, one missing", timeOf(readTopic, 0, -1), timeOf(missing, 0, -1))
		try("a partition twice", timeOf(readTopic, 0, -1), timeOf(readTopic, 0, -2))
		try("a topic twice", timeOf(readTopic, 0, -1), timeOf(missing, 0, -1), timeOf(readTopic, 0, -2))
		try("a missing topic's partition twice", timeOf(missing, 0, -1), timeOf(missing, 0, -2))
		for _, kind := range illegalNames() {
			try("illegal "+kind, timeOf(illegal()[kind], 0, -1))
		}
		none := listOf(timeOf(readTopic, 0, -1))
		none.Topics[0].Partitions = nil
		s.add(row, v, "a topic without partitions", ask(none)...)
		for _, replica := range []int32{0, 1, -2, -3} {
			req := listOf(timeOf(readTopic, 0, -1))
			req.ReplicaID = replica
			s.add(row, v, "replica "+strconv.Itoa(int(replica)), ask(req)...)
		}
		for _, level := range []int8{1, 2, -1, 127} {
			req := listOf(timeOf(readTopic, 0, -1))
			req.IsolationLevel = level
			if v >= 2 {
				s.add(row, v, "isolation level "+strconv.Itoa(int(level)), ask(req)...)
			}
		}
		for _, epoch := range []int32{0, 1, -2} {
			p := timeOf(readTopic, 0, -1)
			p.CurrentLeaderEpoch = epoch
			if v >= 4 {
				s.add(row, v, "leader epoch "+strconv.Itoa(int(epoch)), ask(listOf(p))...)
			}
		}
	}
}
