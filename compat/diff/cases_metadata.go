package main

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// illegal are names no topic can have, by what is wrong with them.
func illegal() map[string]string {
	return map[string]string{
		"empty": "", "dot": ".", "dots": "..", "space": "a b", "slash": "a/b", "colon": "a:b", "letter": "ä",
		"control": "a\x00b", "long": strings.Repeat("t", 250), "very long": strings.Repeat("t", 20000),
	}
}

// illegalNames are their keys, in order.
func illegalNames() []string {
	return []string{"empty", "dot", "dots", "space", "slash", "colon", "letter", "control", "long", "very long"}
}

func (s *suite) metadata() {
	row := s.row(3)
	for _, v := range every(row) {
		asks := func(name string, req *kmsg.MetadataRequest) { s.add(row, v, name, ask(req)...) }
		all := metadataOf(false)
		if all.Topics = nil; v == 0 {
			all.Topics = []kmsg.MetadataRequestTopic{}
		}
		asks("all", all)
		if v > 0 {
			asks("none", metadataOf(false))
		}
		asks("one", metadataOf(false, readTopic))
		asks("one, twice", metadataOf(false, readTopic, readTopic))
		asks("two", metadataOf(false, readTopic, targetTopic(0)))
		if v >= 4 {
			asks("hidden and missing", metadataOf(false, "__missing"))
		}
		asks("hidden", metadataOf(true, hiddenTopic))
		asks("the offsets topic", metadataOf(false, "__consumer_offsets"))
		if v >= 4 {
			asks("missing", metadataOf(false, missing))
			asks("missing, twice", metadataOf(false, missing, missing))
			asks("one and missing", metadataOf(false, missing, readTopic))
			asks("three hundred missing", metadataOf(false, numbered(300)...))
		}
		for _, kind := range illegalNames() {
			asks("illegal "+kind, metadataOf(false, illegal()[kind]))
			asks("illegal "+kind+", created", metadataOf(true, illegal()[kind]))
		}
		asks("illegal and one", metadataOf(false, "a b", readTopic))
		asks("illegal, twice", metadataOf(false, "a b", "a b"))
		if v >= 8 && v <= 10 {
			cluster := metadataOf(false, readTopic)
			cluster.IncludeClusterAuthorizedOperations = true
			asks("operations of the cluster", cluster)
		}
		if v >= 8 {
			topic := metadataOf(false, readTopic)
			topic.IncludeTopicAuthorizedOperations = true
			asks("operations of the topic", topic)
		}
		s.metadataByID(v)
		s.metadataByHand(v)
	}
	// Afterwards: an Apache Kafka shows a topic a while after it was asked for.
	for _, v := range every(row) {
		s.add(row, v, "created", ask(metadataOf(true, fmt.Sprintf("created-%d", v)))...)
		s.add(row, v, "a name of 249", ask(metadataOf(true, fmt.Sprintf("%0249d", v)))...)
	}
}

// metadataByID are topics asked for by id.
func (s *suite) metadataByID(v int16) {
	if v < 10 {
		return
	}
	row := s.row(3)
	by := func(name string, topics ...kmsg.MetadataRequestTopic) {
		req := metadataOf(true)
		req.Topics = topics
		s.add(row, v, name, ask(req)...)
	}
	id := func(name string) kmsg.MetadataRequestTopic {
		return kmsg.MetadataRequestTopic{TopicID: wordID(name)}
	}
	by("by id", id(readTopic))
	by("by id, twice", id(readTopic), id(readTopic))
	by("by id, two", id(readTopic), id(targetTopic(0)))
	by("by the id of nothing", id(missing))
	by("by id, one good, one of nothing", id(readTopic), id(missing))
	by("neither name nor id", kmsg.MetadataRequestTopic{})
}

// metadataByHand are requests that no encoder writes.
func (s *suite) metadataByHand(v int16) {
	row := s.row(3)
	by := func(name string, b ...byte) {
		s.add(row, v, name, step{req: metadataOf(false), edit: body(b...)})
	}
	if v < 9 {
		flags := make([]byte, map[bool]int{v >= 4: 1}[true]+map[bool]int{v >= 8: 2}[true])
		by("null name", append([]byte{0, 0, 0, 1, 0xff, 0xff}, flags...)...)
		by("count -2", append([]byte{0xff, 0xff, 0xff, 0xfe}, flags...)...)
		by("a count of two thousand million", append([]byte{0x7f, 0xff, 0xff, 0xff}, flags...)...)
		by("a name that is cut", 0, 0, 0, 1, 0, 9, 'a')
		if v == 0 {
			by("null topics", 0xff, 0xff, 0xff, 0xff)
		}
		return
	}
	if v == 9 {
		by("null name", 2, 0, 0, 0, 0, 0, 0)
		by("a name that is cut", 2, 9, 'a')
		by("a boolean of 2", 0, 2, 0, 0, 0)
	}
}

func metadataOf(create bool, names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = create
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	return req
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("missing-%03d", i)
	}
	return names
}
