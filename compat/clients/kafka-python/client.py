"""kafka-python as a client under test, 3.x and 2.0.2 alike."""

import time

import kafka

import kit
import logs
import rows

READ_DEADLINE = 15
NO_NULL = "kafka-python has no null header values"
NO_EMPTY = "kafka-python wants a key or a value"


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

    def brokers(self, token):
        admin = kafka.KafkaAdminClient(**security(token))
        try:
            return [f"{b['host']}:{b['port']}" for b in admin.describe_cluster()["brokers"]]
        finally:
            admin.close()

    def refused(self, token):
        with logs.shown() as said:
            try:
                kafka.KafkaProducer(**security(token))
            except Exception as e:
                return "\n".join([*said, kit.text_of(e)])
        raise AssertionError("the login succeeded")

    def produce(self, token, topic, records, codec, idempotent):
        options = {}
        if idempotent or not self.version.startswith("2."):
            options["enable_idempotence"] = idempotent
        producer = self.producer(token, codec, options)
        try:
            futures = [
                producer.send(topic, r.value, r.key, r.headers, partition=0, timestamp_ms=r.time) for r in records
            ]
            for future in futures:
                future.get(timeout=10)
        finally:
            producer.close(timeout=5)

    def producer(self, token, codec, options):
        try:
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
        except AssertionError as e:
            # It wants to see brokers newer than what it takes this one for.
            if "enable_idempotence" in str(e) or "Zstd" in str(e):
                raise kit.Skip(str(e)) from e
            raise

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


def record(r):
    return rows.Record(r.key, r.value, r.timestamp, list(r.headers), r.offset)


kit.run(KafkaPython())
