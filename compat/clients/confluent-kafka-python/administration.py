"""confluent_kafka.admin. Every call is a future, or several by their names."""

from confluent_kafka import ConsumerGroupTopicPartitions, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

import admins

DEADLINE = 10


class Administration(admins.Admin):
    def __init__(self, client):
        self.client = client

    def create_topic(self, topic, partitions, configs):
        only(self.client.create_topics([NewTopic(topic, partitions, 1, config=configs)]))

    def topics(self):
        return list(self.client.list_topics(timeout=DEADLINE).topics)

    def partitions(self, topic):
        return len(only(self.client.describe_topics(TopicCollection([topic]))).partitions)

    def add_partitions(self, topic, total):
        only(self.client.create_partitions([NewPartitions(topic, total)]))

    def delete_topic(self, topic):
        only(self.client.delete_topics([topic]))

    def configs(self, topic):
        described = only(self.client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))
        return {name: entry.value for name, entry in described.items()}

    def set_config(self, topic, name, value):
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        only(self.client.incremental_alter_configs([resource]))

    def groups(self):
        return [g.group_id for g in self.client.list_consumer_groups().result(DEADLINE).valid]

    def members(self, group, topic):
        described = only(self.client.describe_consumer_groups([group]))
        return [
            [p.partition for p in member.assignment.topic_partitions if p.topic == topic] for member in described.members
        ]

    def offsets(self, group, topic):
        listed = only(self.client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
        return {p.partition: p.offset for p in listed.topic_partitions if p.topic == topic}

    def set_offsets(self, group, topic, offsets):
        partitions = [TopicPartition(topic, p, at) for p, at in offsets.items()]
        only(self.client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, partitions)]))

    def delete_group(self, group):
        only(self.client.delete_consumer_groups([group]))

    def close(self):
        pass


def only(futures):
    """Wait for the one result."""
    (future,) = futures.values()
    return future.result(DEADLINE)
