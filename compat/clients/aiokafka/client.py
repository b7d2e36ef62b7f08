"""aiokafka as a client under test."""

import asyncio
import ssl

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

import administration
import groups
import kit
import logs
import rows
import transactions

DEADLINE = 15
NO_EMPTY = "aiokafka wants a key or a value"


class Aiokafka(kit.Driver):
    name = "aiokafka"
    version = aiokafka.__version__
    cannot = {"k-null-both": NO_EMPTY, "h-null-record": NO_EMPTY}

    def brokers(self, token):
        return wait(brokers(token))

    def refused(self, token):
        return wait(refused(token))

    def produce(self, token, topic, records, codec, idempotent):
        wait(produce(token, topic, records, codec, idempotent))

    def read(self, token, topic, n, offsets):
        return wait(read(token, topic, n, offsets))

    def offset_at(self, token, topic, ms):
        return wait(offset_at(token, topic, ms))

    def end(self, token, topic):
        return wait(end(token, topic))

    def topics(self, token):
        return wait(topics(token))

    def member(self, token, group, topic, instance=None, cooperative=False):
        if cooperative:
            raise kit.Skip("aiokafka has no cooperative assignor")
        return Member(token, group, topic, instance)

    def admin(self, token):
        return administration.Administration(lambda: AIOKafkaAdminClient(**security(token)))

    def transactional(self, token, id):
        return transactions.Transactional(lambda: AIOKafkaProducer(**security(token), transactional_id=id))


class Member(groups.Member, ConsumerRebalanceListener):
    """A consumer in an event loop of its own, which whoever polls it runs."""

    def __init__(self, token, group, topic, instance):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self.start(token, group, topic, instance))

    async def start(self, token, group, topic, instance):
        self.consumer = AIOKafkaConsumer(
            **security(token),
            group_id=group,
            group_instance_id=instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=groups.SESSION_MS,
            heartbeat_interval_ms=200,
            fetch_max_wait_ms=100,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        self.consumer.subscribe([topic], listener=self)
        await self.consumer.start()

    def on_partitions_assigned(self, assigned):
        self.given(p.partition for p in assigned)

    def on_partitions_revoked(self, revoked):
        self.taken(p.partition for p in revoked)

    def poll(self):
        polled = self.loop.run_until_complete(self.consumer.getmany(timeout_ms=100, max_records=5))
        return [(p.partition, r.offset) for p, records in polled.items() for r in records]

    def commit(self):
        self.loop.run_until_complete(self.consumer.commit())

    def close(self):
        self.loop.run_until_complete(self.consumer.stop())
        self.loop.close()


def wait(coroutine):
    async def limited():
        async with asyncio.timeout(DEADLINE):
            return await coroutine

    return asyncio.run(limited())


def security(token):
    return {
        "bootstrap_servers": kit.BOOTSTRAP,
        "security_protocol": "SASL_SSL",
        "ssl_context": ssl.create_default_context(cafile=kit.CA),
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "aiokafka",
        "sasl_plain_password": token,
    }


async def brokers(token):
    admin = AIOKafkaAdminClient(**security(token))
    await admin.start()
    try:
        return [f"{b['host']}:{b['port']}" for b in (await admin.describe_cluster())["brokers"]]
    finally:
        await admin.close()


async def refused(token):
    producer = AIOKafkaProducer(**security(token))
    with logs.shown() as said:
        try:
            await producer.start()
        except Exception as e:
            return "\n".join([*said, kit.text_of(e)])
        finally:
            await producer.stop()
    raise AssertionError("the login succeeded")


async def produce(token, topic, records, codec, idempotent):
    producer = AIOKafkaProducer(
        **security(token),
        acks="all",
        compression_type=None if codec == "none" else codec,
        enable_idempotence=idempotent,
        linger_ms=20,
        max_batch_size=1 << 20,
        max_request_size=1 << 20,
        request_timeout_ms=10_000,
    )
    await producer.start()
    try:
        await transactions.sent(producer, topic, records)
    finally:
        await producer.stop()


def consumer(token):
    return AIOKafkaConsumer(**security(token), auto_offset_reset="none", fetch_max_wait_ms=100)


async def read(token, topic, n, offsets):
    out = []
    partition = TopicPartition(topic, 0)
    async with consumer(token) as c:
        c.assign([partition])
        for offset in offsets:
            c.seek(partition, offset)
            for _ in range(n):
                out.append(record(await c.getone(partition)))
    return out


async def offset_at(token, topic, ms):
    partition = TopicPartition(topic, 0)
    async with consumer(token) as c:
        return (await c.offsets_for_times({partition: ms}))[partition].offset


async def end(token, topic):
    partition = TopicPartition(topic, 0)
    async with consumer(token) as c:
        return (await c.end_offsets([partition]))[partition]


async def topics(token):
    async with consumer(token) as c:
        return sorted(await c.topics())


def record(r):
    return rows.Record(r.key, r.value, r.timestamp, list(r.headers), r.offset)


kit.run(Aiokafka())
