"""kafka-python as a client under test, 3.x and 2.0.2 alike."""

import time

import kafka

import groups
import kit
import logs
import rows

READ_DEADLINE = 15
NO_NULL = "kafka-python has no null header values"
NO_EMPTY = "kafka-python wants a key or a value"
NO_SENTENCE = "kafka-python 2 logs in with SaslHandshake 0, where a refusal is the end of the connection and no more"
OLD = kafka.__version__.startswith("2.")


def security(token):
    return {
        "bootstrap_servers": kit.BOOTSTRAP,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": kit.CA,
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "kafka-python",
        "sasl_plain_password": token,
    }


class KafkaPython(kit.Driver):
    name = "kafka-python"
    version = kafka.__version__
    cannot = {
        "k-null-both": NO_EMPTY,
        "h-null-record": NO_EMPTY,
        "h-null": NO_NULL,
        "h-null-and-empty": NO_NULL,
    }
    if OLD:
        cannot |= {"said.bad-token": NO_SENTENCE, "said.missing-scope": NO_SENTENCE}
        cannot["delete.admin-groups"] = "kafka-python 2 deletes groups, not single offsets"

    def brokers(self, token):
        admin = kafka.KafkaAdminClient(**security(token))
        try:
            return [f"{b['host']}:{b['port']}" for b in admin.describe_cluster()["brokers"]]
        finally:
            admin.close()

    def refused(self, token):
        # It tries again until then, and tells each time in the log.
        patience = {} if OLD else {"bootstrap_timeout_ms": 2000}
        with logs.shown() as said:
            try:
                kafka.KafkaProducer(**security(token), **patience)
            except Exception as e:
                return "\n".join([*said, kit.text_of(e)])
        raise AssertionError("the login succeeded")

    def produce(self, token, topic, records, codec, idempotent):
        if OLD and idempotent:
            raise kit.Skip("kafka-python 2 has no idempotent producer")
        producer = self.producer(token, codec, {} if OLD else {"enable_idempotence": idempotent})
        try:
            futures = [
                producer.send(topic, r.value, r.key, r.headers, partition=0, timestamp_ms=r.time) for r in records
            ]
            for future in futures:
                future.get(timeout=10)
        finally:
            producer.close(timeout=5)

    def producer(self, token, codec, options):
        return kafka.KafkaProducer(
            **security(token),
            acks="all",
            compression_type=None if codec == "none" else codec,
            linger_ms=20,
            batch_size=1 << 20,
            max_request_size=1 << 20,
            max_in_flight_requests_per_connection=1,
            max_block_ms=10_000,
            **options,
        )

    def consumer(self, token):
        return kafka.KafkaConsumer(
            **security(token), auto_offset_reset="none", enable_auto_commit=False, fetch_max_wait_ms=100
        )

    def read(self, token, topic, n, offsets):
        out = []
        partition = kafka.TopicPartition(topic, 0)
        consumer = self.consumer(token)
        try:
            consumer.assign([partition])
            deadline = time.monotonic() + READ_DEADLINE
            for offset in offsets:
                consumer.seek(partition, offset)
                want = len(out) + n
                while len(out) < want:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{len(out)} records, want {want}")
                    polled = consumer.poll(timeout_ms=500, max_records=want - len(out))
                    out += map(record, polled.get(partition, []))
            return out
        finally:
            consumer.close()

    def offset_at(self, token, topic, ms):
        partition = kafka.TopicPartition(topic, 0)
        consumer = self.consumer(token)
        try:
            return consumer.offsets_for_times({partition: ms})[partition].offset
        finally:
            consumer.close()

    def end(self, token, topic):
        partition = kafka.TopicPartition(topic, 0)
        consumer = self.consumer(token)
        try:
            return consumer.end_offsets([partition])[partition]
        finally:
            consumer.close()

    def topics(self, token):
        consumer = self.consumer(token)
        try:
            return sorted(consumer.topics())
        finally:
            consumer.close()

    def member(self, token, group, topic, instance=None, cooperative=False):
        if OLD and (instance or cooperative):
            raise kit.Skip("kafka-python 2 has neither static members nor cooperative-sticky")
        return Member(token, group, topic, instance, cooperative)

    def admin(self, token):
        client = kafka.KafkaAdminClient(**security(token))
        if OLD:
            import administration2

            return administration2.Administration(client, security(token))
        import administration

        return administration.Administration(client)

    def transactional(self, token, id):
        if OLD:
            raise kit.Skip("kafka-python 2 has no transactions")
        import transactions

        return transactions.Transactional(self.producer(token, "none", {"transactional_id": id}))


class Member(groups.Member, kafka.ConsumerRebalanceListener):
    def __init__(self, token, group, topic, instance, cooperative):
        super().__init__()
        options = {"group_instance_id": instance} if instance else {}
        if cooperative:
            from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

            options["partition_assignment_strategy"] = [CooperativeStickyAssignor]
        self.consumer = kafka.KafkaConsumer(
            **security(token),
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=groups.SESSION_MS,
            heartbeat_interval_ms=200,
            fetch_max_wait_ms=100,
            **options,
        )
        self.consumer.subscribe([topic], listener=self)

    def on_partitions_assigned(self, assigned):
        self.given(p.partition for p in assigned)

    def on_partitions_revoked(self, revoked):
        self.taken(p.partition for p in revoked)

    def on_partitions_lost(self, lost):
        self.taken(p.partition for p in lost)

    def poll(self):
        polled = self.consumer.poll(timeout_ms=100, max_records=5)
        return [(p.partition, r.offset) for p, records in polled.items() for r in records]

    def commit(self):
        self.consumer.commit()

    def close(self):
        self.consumer.close(autocommit=False)


def record(r):
    return rows.Record(r.key, r.value, r.timestamp, list(r.headers), r.offset)


kit.run(KafkaPython())
