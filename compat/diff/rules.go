package main

import (
	"fmt"
	"strconv"
	"strings"
)

// rule takes away a difference that says nothing. It sees the two values of a
// path that differ, and each becomes what Value makes of it. Error codes and
// outcomes never come here. A rule that took nothing away fails the run.
type rule struct {
	API   string // the name of an API, or * for all
	Path  string // * stands for anything, | separates alternatives
	Why   string
	Value func(v string, s side) string
}

// rules is the whole normaliser.
func rules() []rule {
	return []rule{
		{"*", "Port|*.Port", "each side advertises the port it listens on", func(v string, s side) string {
			if v == strconv.Itoa(s.port) {
				return "own"
			}
			return v
		}},
		{"FindCoordinator", "ErrorMessage|*.ErrorMessage", "where nothing is wrong Apache Kafka says nothing in several ways", func(v string, _ side) string {
			if v == `"NONE"` || v == `""` {
				return "null"
			}
			return v
		}},
		{"*", "ErrorMessage|*.ErrorMessage", "a sentence is for people; that there is one is compared", func(v string, _ side) string {
			if strings.HasPrefix(v, `"`) && v != `""` {
				return "a sentence"
			}
			return v
		}},
		{"InitProducerID", "ProducerID", "a fresh id is any id", func(v string, _ side) string {
			if id, err := strconv.ParseInt(v, 10, 64); err == nil && id >= 0 {
				return "an id"
			}
			return v
		}},
		{"DescribeTransactions|DescribeProducers", "*.StartTimestamp|*.LastTimestamp", "a time is any time", func(v string, _ side) string {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil && n > 0 {
				return "a time"
			}
			return v
		}},
		{"Fetch", "SessionID", "a session's id is any id", func(v string, _ side) string {
			if v != "0" {
				return "an id"
			}
			return v
		}},
		{"Metadata|DescribeTopicPartitions", "*.TopicID", "each side gives topics ids of its own; that there is one is compared", func(v string, _ side) string {
			if v != fmt.Sprint([16]byte{}) {
				return "an id"
			}
			return v
		}},
		{"JoinGroup|DescribeGroups", "Members.order|Groups[*].Members.order", "Apache Kafka answers in the order of a hash table", func(string, side) string {
			return "any"
		}},
		{"Metadata|Produce|ListOffsets|OffsetFetch|AddPartitionsToTxn", "Topics.order|Topics[*].Partitions.order", "Apache Kafka answers in the order of a hash table", func(string, side) string {
			return "any"
		}},
	}
}
