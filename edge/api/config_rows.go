package api

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/topicconf"
)

// configRow is one config as it is described.
type configRow = kmsg.DescribeConfigsResponseResourceConfig

// topicRows are the configs of a topic: what always has a value, and what was
// set. Of an untracked topic nothing is known beside the defaults, and nothing
// can be changed.
func topicRows(values topicconf.Values, tracked bool) []configRow {
	var rows []configRow
	for _, key := range topicconf.Keys() {
		value, set := values[key.Name]
		if !set {
			value = key.Default
		}
		if value == "" || key.Name == topicconf.RetentionMs && !tracked {
			continue
		}
		row := rowOfConfig(key.Name, value, kmsg.ConfigType(key.Type), key.Doc)
		row.Source, row.ReadOnly = kmsg.ConfigSourceDefaultConfig, !tracked
		if set && value != offRetention(key.Name) {
			row.Source = kmsg.ConfigSourceDynamicTopicConfig
		}
		row.IsDefault = row.Source == kmsg.ConfigSourceDefaultConfig
		rows = append(rows, row)
	}
	return rows
}

// offRetention is the value of retention.ms that says what the default says.
func offRetention(name string) string {
	if name == topicconf.RetentionMs {
		return "-1"
	}
	return ""
}

func rowOfConfig(name, value string, t kmsg.ConfigType, doc string) configRow {
	row := kmsg.NewDescribeConfigsResponseResourceConfig()
	row.Name, row.Value, row.ConfigType, row.Documentation = name, &value, t, &doc
	return row
}

// brokerRows are the configs of the one broker. All are read-only: they are
// settings of this process. message.max.bytes is not there: what a record may
// weigh is its tenant's plan's to say.
func (h *Handlers) brokerRows() []configRow {
	a := h.cfg.Admin
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	var rows []configRow
	add := func(name, value string, t kmsg.ConfigType, source kmsg.ConfigSource, doc string) {
		row := rowOfConfig(name, value, t, doc)
		row.Source, row.ReadOnly = source, true
		row.IsDefault = source == kmsg.ConfigSourceDefaultConfig
		rows = append(rows, row)
	}
	const own, fixed = kmsg.ConfigSourceStaticBrokerConfig, kmsg.ConfigSourceDefaultConfig
	add("num.partitions", strconv.Itoa(int(a.DefaultPartitions)), kmsg.ConfigTypeInt, own, "Width of a topic that declares none.")
	add("auto.create.topics.enable", "true", kmsg.ConfigTypeBoolean, fixed, "Topics are made when they are asked for, by who may.")
	add("compression.type", "producer", kmsg.ConfigTypeString, fixed, "Batches are taken with any codec.")
	add("connections.max.idle.ms", ms(a.Idle), kmsg.ConfigTypeLong, fixed, "How long a silent connection stays open.")
	add("group.initial.rebalance.delay.ms", ms(a.Group.JoinDelay), kmsg.ConfigTypeInt, own, "How long an empty group waits for more members.")
	add("group.min.session.timeout.ms", ms(a.Group.MinSession), kmsg.ConfigTypeInt, own, "Shortest session timeout of a member.")
	add("group.max.session.timeout.ms", ms(a.Group.MaxSession), kmsg.ConfigTypeInt, own, "Longest session timeout of a member.")
	add("transaction.max.timeout.ms", ms(a.TxnMaxTimeout), kmsg.ConfigTypeInt, own, "Longest timeout of a transaction.")
	return rows
}
