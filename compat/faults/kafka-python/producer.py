"""An idempotent producer program of compat/faults: kafka-python 3."""

import logging
import os
import sys
import threading

from kafka import KafkaProducer

TOPIC = os.environ["QE_FAULTS_TOPIC"]
PARTITIONS = int(os.environ["QE_FAULTS_PARTITIONS"])
PADDING = " " + "x" * 100

lock = threading.Lock()


def say(*words):
    with lock:
        print(*words, flush=True)


def main():
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    producer = KafkaProducer(
        bootstrap_servers=os.environ["QE_FAULTS_BOOTSTRAP"],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="kafka-python",
        sasl_plain_password=os.environ["QE_FAULTS_TOKEN"],
        enable_idempotence=True,
        batch_size=4096,  # so that there are many
        linger_ms=5,
    )
    say("ready")
    written = 0
    for line in sys.stdin:
        for n in range(written, int(line)):
            future = producer.send(TOPIC, value=f"{n}{PADDING}".encode(), partition=n % PARTITIONS)
            future.add_callback(lambda where, n=n: say("acked", n, where.offset))
            future.add_errback(lambda error, n=n: say("failed", n, repr(error)))
        written = max(written, int(line))
    producer.flush(timeout=120)
    producer.close()
    say("done")


main()
