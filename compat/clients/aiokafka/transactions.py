"""AIOKafkaProducer with a transactional id, in an event loop that each call runs."""

import asyncio

from aiokafka import TopicPartition

import txns


class Transactional(txns.Transactional):
    def __init__(self, make):
        self.loop = asyncio.new_event_loop()
        self.producer = self.wait(started(make))

    def wait(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def begin(self):
        self.wait(self.producer.begin_transaction())

    def produce(self, topic, records):
        self.wait(sent(self.producer, topic, records))

    def offsets(self, group, topic, offsets):
        given = {TopicPartition(topic, p): at for p, at in offsets.items()}
        self.wait(self.producer.send_offsets_to_transaction(given, group))

    def commit(self):
        self.wait(self.producer.commit_transaction())

    def abort(self):
        self.wait(self.producer.abort_transaction())

    def close(self):
        self.wait(self.producer.stop())
        self.loop.close()


async def started(make):
    producer = make()
    await producer.start()
    return producer


async def sent(producer, topic, records):
    futures = [await producer.send(topic, r.value, r.key, 0, r.time, r.headers) for r in records]
    await asyncio.gather(*futures)
