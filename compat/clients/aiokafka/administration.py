"""AIOKafkaAdminClient, in an event loop that each call runs. Its answers are as
they came over the wire, with the refusals in them."""

import asyncio

from aiokafka.admin import NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

import admins
import kit


class Administration(admins.Admin):
    def __init__(self, make):
        self.loop = asyncio.new_event_loop()
        self.client = self.wait(started(make))

    def wait(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def create_topic(self, topic, partitions, configs):
        answer = self.wait(self.client.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)]))
        for _, code, message in answer.topic_errors:
            raised(code, message)

    def topics(self):
        return self.wait(self.client.list_topics())

    def partitions(self, topic):
        return len(self.wait(self.client.describe_topics([topic]))[0]["partitions"])

    def add_partitions(self, topic, total):
        self.wait(self.client.create_partitions({topic: NewPartitions(total)}))

    def delete_topic(self, topic):
        answer = self.wait(self.client.delete_topics([topic]))
        for _, code in answer.topic_error_codes:
            raised(code, topic)

    def configs(self, topic):
        (answer,) = self.wait(self.client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))
        code, message, _, _, entries = answer.resources[0]
        raised(code, message)
        return {entry[0]: entry[1] for entry in entries}

    def set_config(self, topic, name, value):
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        (answer,) = self.wait(self.client.alter_configs([resource]))
        code, message, _, _ = answer.resources[0]
        raised(code, message)

    def members(self, group, topic):
        raise kit.Skip("aiokafka's administration cannot delete groups or offsets")

    def close(self):
        self.wait(self.client.close())
        self.loop.close()


async def started(make):
    client = make()
    await client.start()
    return client


def raised(code, message):
    if code:
        raise for_code(code)(message)
