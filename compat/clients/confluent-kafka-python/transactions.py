"""confluent_kafka.Producer with a transactional id."""

from confluent_kafka import Consumer, KafkaException, TopicPartition

import txns

DEADLINE = 10


class Transactional(txns.Transactional):
    def __init__(self, producer, settings):
        self.producer, self.settings = producer, settings
        producer.init_transactions(DEADLINE)

    def begin(self):
        self.producer.begin_transaction()

    def produce(self, topic, records):
        errors = []
        for r in records:
            self.producer.produce(
                topic,
                r.value,
                r.key,
                partition=0,
                on_delivery=lambda error, _: errors.append(error) if error else None,
            )
        left = self.producer.flush(DEADLINE)
        if errors:
            raise KafkaException(errors[0])
        if left:
            raise TimeoutError(f"{left} records are not delivered")

    def offsets(self, group, topic, offsets):
        # Only a consumer of the group has its metadata; nobody joins the group by it.
        consumer = Consumer({**self.settings, "group.id": group})
        try:
            self.producer.send_offsets_to_transaction(
                [TopicPartition(topic, p, at) for p, at in offsets.items()], consumer.consumer_group_metadata(), DEADLINE
            )
        finally:
            consumer.close()

    def commit(self):
        self.producer.commit_transaction(DEADLINE)

    def abort(self):
        self.producer.abort_transaction(DEADLINE)

    def close(self):
        pass
