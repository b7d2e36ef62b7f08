"""KafkaAdminClient of kafka-python 2.0.2. Configs are answered as they came over
the wire; a group's offsets are set by a consumer that assigns itself partitions."""

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import NoError, for_code
from kafka.structs import OffsetAndMetadata

import admins


class Administration(admins.Admin):
    def __init__(self, client, security):
        self.client, self.security = client, security

    def create_topic(self, topic, partitions, configs):
        self.client.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])

    def topics(self):
        return self.client.list_topics()

    def partitions(self, topic):
        return len(self.client.describe_topics([topic])[0]["partitions"])

    def add_partitions(self, topic, total):
        self.client.create_partitions({topic: NewPartitions(total)})

    def delete_topic(self, topic):
        self.client.delete_topics([topic])

    def configs(self, topic):
        (answer,) = self.client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        code, message, _, _, entries = answer.resources[0]
        raised(for_code(code), message)
        return {entry[0]: entry[1] for entry in entries}

    def set_config(self, topic, name, value):
        answer = self.client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})])
        code, message, _, _ = answer.resources[0]
        raised(for_code(code), message)

    def groups(self):
        return [name for name, _ in self.client.list_consumer_groups()]

    def members(self, group, topic):
        (described,) = self.client.describe_consumer_groups([group])
        return [
            [p for name, partitions in m.member_assignment.assignment if name == topic for p in partitions]
            for m in described.members
        ]

    def offsets(self, group, topic):
        listed = self.client.list_consumer_group_offsets(group)
        return {p.partition: o.offset for p, o in listed.items() if p.topic == topic}

    def set_offsets(self, group, topic, offsets):
        consumer = KafkaConsumer(**self.security, group_id=group, enable_auto_commit=False)
        try:
            consumer.assign([TopicPartition(topic, p) for p in offsets])
            consumer.commit({TopicPartition(topic, p): OffsetAndMetadata(at, "") for p, at in offsets.items()})
        finally:
            consumer.close(autocommit=False)

    def delete_group(self, group):
        for _, error in self.client.delete_consumer_groups([group]):
            raised(error, "")

    def close(self):
        self.client.close()


def raised(error, message):
    if error is not NoError:
        raise error(message)
