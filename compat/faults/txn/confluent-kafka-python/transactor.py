"""A transactional program of compat/faults: librdkafka's producer and consumer
side by side, by confluent-kafka-python."""

import os
import sys
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

ID = os.environ["QE_FAULTS_TXN_ID"]
OUTPUT = os.environ["QE_FAULTS_OUTPUT"]
FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}

COMMON = {
    "bootstrap.servers": os.environ["QE_FAULTS_BOOTSTRAP"],
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "confluent",
    "sasl.password": os.environ["QE_FAULTS_TOKEN"],
    "metadata.recovery.strategy": "none",  # docs/CLIENTS.md
    "error_cb": lambda e: print("error:", e, file=sys.stderr, flush=True),
}

stopping = threading.Event()


def say(*words):
    print(time.time_ns() // 1000, *words, flush=True)


def watch():
    sys.stdin.read()
    stopping.set()


def form(by_partition):
    return ";".join(f"{p}:{what}" for p, what in sorted(by_partition.items()))


class Life:
    """One producer, from transaction to transaction."""

    def __init__(self, consumer, life):
        self.consumer, self.life, self.number = consumer, life, 0
        self.producer = Producer(
            COMMON | {"transactional.id": ID, "transaction.timeout.ms": int(os.environ["QE_FAULTS_TXN_TIMEOUT_MS"])}
        )

    def run(self):
        say("init", self.life)
        if not self.call("init", self.producer.init_transactions):
            return
        say("inited", self.life)
        while not stopping.is_set():
            messages = [m for m in self.consumer.consume(40, 0.2) if m.error() is None]
            if messages and not self.transact(messages):
                return

    def transact(self, messages):
        """False: the producer is of no use any more."""
        self.number += 1
        writes, offsets = {}, {}
        for m in messages:
            writes.setdefault(m.partition(), []).append(m.value().decode())
            offsets[m.partition()] = m.offset() + 1
        topic = messages[0].topic()
        positions = [TopicPartition(topic, p, offset) for p, offset in offsets.items()]
        member = self.consumer.consumer_group_metadata()

        def produce():
            for p, numbers in writes.items():
                for n in numbers:
                    self.producer.produce(OUTPUT, f"{n} {ID}/{self.life}/{self.number}".encode(), partition=p)
            self.producer.flush()

        def commit():
            self.producer.commit_transaction()
            say("committed", self.life, self.number)

        steps = {
            "begin": self.producer.begin_transaction,
            "produce": produce,
            "offsets": lambda: self.producer.send_offsets_to_transaction(positions, member),
            "commit": commit,
        }
        for name, step in steps.items():
            if name == "commit":
                say("commit", self.life, self.number, form({p: ",".join(w) for p, w in writes.items()}), form(offsets))
            if not self.call(name, step):
                return self.aborted
        return True

    def call(self, name, step):
        """Does a step. What is retriable is done again; what wants an abort is aborted."""
        self.aborted = False
        while True:
            try:
                step()
                return True
            except KafkaException as e:
                error = e.args[0]
            if error.retriable():
                self.met(name, "retry", error)
                continue
            if not error.txn_requires_abort():
                self.met(name, "fenced" if error.code() in FENCED else "fatal", error)
                return False
            self.met(name, "abort", error)
            if self.call("abort", self.producer.abort_transaction):
                say("aborted", self.life, self.number)
                rewind(self.consumer)
                self.aborted = True
            return False

    def met(self, call, how, error):
        say("met", self.life, self.number, call, how, error.name())
        print(call, error.str(), file=sys.stderr, flush=True)


def rewind(consumer):
    """Goes back to what is committed."""
    for p in consumer.committed(consumer.assignment(), timeout=30):
        consumer.seek(TopicPartition(p.topic, p.partition, p.offset if p.offset >= 0 else OFFSET_BEGINNING))


def main():
    threading.Thread(target=watch, name="stdin", daemon=True).start()
    consumer = Consumer(
        COMMON
        | {
            "group.id": os.environ["QE_FAULTS_GROUP"],
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "heartbeat.interval.ms": 300,
            "session.timeout.ms": 10000,
        }
    )
    consumer.subscribe([os.environ["QE_FAULTS_INPUT"]])
    life = 0
    while not stopping.is_set():
        life += 1
        Life(consumer, life).run()
        if not stopping.is_set():
            rewind(consumer)
    consumer.close()
    say("done")


main()
