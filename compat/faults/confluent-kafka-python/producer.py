"""An idempotent producer program of compat/faults: librdkafka with
enable.idempotence, by confluent-kafka-python."""

import os
import sys
import threading

from confluent_kafka import Producer

TOPIC = os.environ["QE_FAULTS_TOPIC"]
PARTITIONS = int(os.environ["QE_FAULTS_PARTITIONS"])
PADDING = " " + "x" * 100


def say(*words):
    print(*words, flush=True)


def main():
    producer = Producer(
        {
            "bootstrap.servers": os.environ["QE_FAULTS_BOOTSTRAP"],
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "confluent",
            "sasl.password": os.environ["QE_FAULTS_TOKEN"],
            "enable.idempotence": True,
            "batch.num.messages": 40,  # so that there are many
            "error_cb": lambda e: print("error:", e, file=sys.stderr, flush=True),
        }
    )
    say("ready")
    closing = threading.Event()

    def poll():
        while not closing.is_set():
            producer.poll(0.1)

    poller = threading.Thread(target=poll, name="poll")
    poller.start()

    def outcome(n):
        def report(error, message):
            if error is not None:
                say("failed", n, error)
            else:
                say("acked", n, message.offset())

        return report

    written = 0
    for line in sys.stdin:
        while written < int(line):
            value = f"{written}{PADDING}".encode()
            try:
                producer.produce(TOPIC, value, partition=written % PARTITIONS, on_delivery=outcome(written))
            except BufferError:
                producer.poll(0.1)
                continue
            written += 1
    left = producer.flush(120)
    closing.set()
    poller.join()
    if left:
        sys.exit(f"{left} records have no outcome")
    say("done")


main()
