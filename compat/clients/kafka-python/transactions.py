"""kafka-python 3's transactional producer."""

from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

import txns


class Transactional(txns.Transactional):
    def __init__(self, producer):
        self.producer = producer
        producer.init_transactions()

    def begin(self):
        self.producer.begin_transaction()

    def produce(self, topic, records):
        futures = [self.producer.send(topic, r.value, r.key, r.headers, partition=0) for r in records]
        for future in futures:
            future.get(timeout=10)

    def offsets(self, group, topic, offsets):
        given = {TopicPartition(topic, p): OffsetAndMetadata(at, "", -1) for p, at in offsets.items()}
        self.producer.send_offsets_to_transaction(given, group)

    def commit(self):
        self.producer.commit_transaction()

    def abort(self):
        self.producer.abort_transaction()

    def close(self):
        self.producer.close(timeout=5)
