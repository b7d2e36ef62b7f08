"""confluent-kafka-python, which is librdkafka, as a client under test."""

import logging
import time

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

import administration
import groups
import kit
import logs
import rows
import transactions

DEADLINE = 15
FOREIGN_EPOCH = 7  # a leader epoch that another cluster may have given: here it must not matter


class Confluent(kit.Driver):
    name = "confluent-kafka-python"
    version = confluent_kafka.version()
    cannot = {
        "t-0": 'librdkafka takes the timestamp 0 for "now"',
        "delete.admin-groups": "its AdminClient deletes groups, not single offsets",
    }

    def brokers(self, token):
        client = Producer(settings(token))
        return [f"{b.host}:{b.port}" for b in client.list_topics(timeout=10).brokers.values()]

    def refused(self, token):
        """A refused login is no exception: callbacks and the log tell of it, and
        the call runs into its timeout."""
        with logs.shown() as said:
            client = Producer(settings(token, error_cb=lambda e: said.append(f"error_cb: {e!r} {e.str()}")))
            try:
                client.list_topics(timeout=3)
            except KafkaException as e:
                client.poll(0)
                return "\n".join([*said, kit.text_of(e)])
        raise AssertionError("the login succeeded")

    def produce(self, token, topic, records, codec, idempotent):
        with logs.shown() as said:
            self.send(token, topic, records, {"compression.codec": codec, "enable.idempotence": idempotent})
        declined = [line for line in said if "not compressing batch" in line]
        if declined:
            raise kit.Skip(declined[0])

    def send(self, token, topic, records, options):
        errors = []
        producer = Producer(
            settings(token, **options, acks="all", **{"linger.ms": 20, "message.timeout.ms": 10_000})
        )
        for r in records:
            producer.produce(
                topic,
                r.value,
                r.key,
                partition=0,
                timestamp=r.time or 0,
                headers=r.headers,
                on_delivery=lambda error, _: errors.append(error) if error else None,
            )
        left = producer.flush(DEADLINE)
        if errors:
            raise KafkaException(errors[0])
        if left:
            raise TimeoutError(f"{left} records are not delivered")

    def read(self, token, topic, n, offsets):
        out = []
        consumer = make_consumer(token)
        try:
            consumer.assign([TopicPartition(topic, 0, offsets[0])])
            deadline = time.monotonic() + DEADLINE
            for i, offset in enumerate(offsets):
                if i > 0:
                    consumer.seek(TopicPartition(topic, 0, offset, leader_epoch=FOREIGN_EPOCH))
                want = len(out) + n
                while len(out) < want:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{len(out)} records, want {want}")
                    for message in consumer.consume(want - len(out), timeout=0.5):
                        if message.error():
                            raise KafkaException(message.error())
                        out.append(record(message))
            return out
        finally:
            consumer.close()

    def offset_at(self, token, topic, ms):
        consumer = make_consumer(token)
        try:
            found = consumer.offsets_for_times([TopicPartition(topic, 0, ms)], timeout=10)[0]
            if found.error:
                raise KafkaException(found.error)
            return found.offset
        finally:
            consumer.close()

    def end(self, token, topic):
        consumer = make_consumer(token)
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1]
        finally:
            consumer.close()

    def topics(self, token):
        return sorted(Producer(settings(token)).list_topics(timeout=10).topics)

    def member(self, token, group, topic, instance=None, cooperative=False):
        return Member(token, group, topic, instance, cooperative)

    def admin(self, token):
        return administration.Administration(AdminClient(settings(token)))

    def transactional(self, token, id):
        return transactions.Transactional(Producer(settings(token, **{"transactional.id": id})), settings(token))


class Member(groups.Member):
    def __init__(self, token, group, topic, instance, cooperative):
        super().__init__()
        options = {
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": True,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": groups.SESSION_MS,
            "heartbeat.interval.ms": 200,
            "fetch.wait.max.ms": 100,
            "partition.assignment.strategy": "cooperative-sticky" if cooperative else "range",
        }
        if instance:
            options["group.instance.id"] = instance
        self.consumer = Consumer(settings(token, **options))
        self.consumer.subscribe(
            [topic],
            on_assign=lambda _, ps: self.given(p.partition for p in ps),
            on_revoke=lambda _, ps: self.taken(p.partition for p in ps),
            on_lost=lambda _, ps: self.taken(p.partition for p in ps),
        )

    def poll(self):
        out = []
        for message in self.consumer.consume(5, timeout=0.1):
            if message.error():
                raise KafkaException(message.error())
            out.append((message.partition(), message.offset()))
        return out

    def commit(self):
        at = self.consumer.position(self.consumer.assignment())
        self.consumer.commit(
            offsets=[TopicPartition(p.topic, p.partition, p.offset, leader_epoch=FOREIGN_EPOCH) for p in at if p.offset >= 0],
            asynchronous=False,
        )

    def close(self):
        self.consumer.close()


def settings(token, **more):
    return {
        "bootstrap.servers": kit.BOOTSTRAP,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": kit.CA,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "confluent-kafka-python",
        "sasl.password": token,
        "logger": logging.getLogger("librdkafka"),
        **more,
    }


def make_consumer(token):
    # The group is a setting that it wants; without subscribe and commit no one joins it.
    return Consumer(
        settings(
            token,
            **{
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
            },
        )
    )


def record(m):
    _, time_ms = m.timestamp()
    return rows.Record(m.key(), m.value(), time_ms, m.headers() or [], m.offset())


kit.run(Confluent())
