"""KafkaAdminClient of kafka-python 3. Some of its answers hold refusals instead
of raising them."""

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import OffsetAndMetadata

import admins


class Administration(admins.Admin):
    def __init__(self, client):
        self.client = client

    def create_topic(self, topic, partitions, configs):
        self.client.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}})

    def topics(self):
        return self.client.list_topics()

    def partitions(self, topic):
        return len(self.client.describe_topics([topic])[0]["partitions"])

    def add_partitions(self, topic, total):
        self.client.create_partitions({topic: total})

    def delete_topic(self, topic):
        self.client.delete_topics([topic])

    def configs(self, topic):
        described = self.client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
        return {name: entry["value"] for name, entry in described["topic"][topic].items()}

    def set_config(self, topic, name, value):
        # A config without a default is not described before it is set.
        altered = self.client.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})], raise_on_unknown=False
        )
        taken(altered["topic"][topic])

    def groups(self):
        return [g["group_id"] for g in self.client.list_groups()]

    def members(self, group, topic):
        described = self.client.describe_groups([group])[group]
        taken(described["error"] or "OK")
        return [
            [p for t in m["member_assignment"]["assigned_partitions"] if t["topic"] == topic for p in t["partitions"]]
            for m in described["members"]
        ]

    def offsets(self, group, topic):
        listed = self.client.list_group_offsets(group)[group]
        return {p.partition: o.offset for p, o in listed.items() if p.topic == topic}

    def set_offsets(self, group, topic, offsets):
        given = {TopicPartition(topic, p): OffsetAndMetadata(at, "", -1) for p, at in offsets.items()}
        for error in self.client.alter_group_offsets(group, given).values():
            raised(error)

    def delete_offset(self, group, topic, partition):
        for error in self.client.delete_group_offsets(group, [TopicPartition(topic, partition)]).values():
            raised(error)

    def delete_group(self, group):
        taken(self.client.delete_groups([group])[group])

    def close(self):
        self.client.close()


def taken(answer):
    if answer != "OK":
        raise RuntimeError(answer)


def raised(error):
    if error.errno != 0:
        raise error()
