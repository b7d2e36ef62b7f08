"""librdkafka, by confluent-kafka-python: a producer with many requests in flight,
and a member of a group that reads meanwhile. The last line is how many records
were acknowledged, and how many were read more than once."""

import os
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaError, Producer

NAME, IN_FLIGHT = os.environ["RELOGIN_NAME"], int(os.environ["RELOGIN_INFLIGHT"])
SECONDS = int(os.environ["RELOGIN_MS"]) / 1000
errors, sent = [], []

# error_cb tells of connections, too, for information: those are tried again.
COMMON = {
    "bootstrap.servers": os.environ["RELOGIN_ADDR"],
    "security.protocol": "SASL_SSL",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "relogin",
    "sasl.password": os.environ["RELOGIN_TOKEN"],
    "ssl.ca.location": os.environ["RELOGIN_CA"],
    "error_cb": lambda err: errors.append(str(err)),
}


def send(producer):
    places = threading.Semaphore(IN_FLIGHT)

    def on_delivery(err, _):
        places.release()
        if err is not None:
            errors.append(f"delivery: {err}")

    end, n = time.monotonic() + SECONDS, 1
    while time.monotonic() < end and not errors:
        while not places.acquire(blocking=False):
            producer.poll(0.1)
        producer.produce(NAME, value=str(n).encode(), on_delivery=on_delivery)
        producer.poll(0)
        n += 1
    if producer.flush(60) != 0:
        errors.append("records were not delivered in a minute")
    sent.append(n)


def main():
    producer = Producer(COMMON | {
        "linger.ms": 0, "batch.num.messages": 1, "enable.idempotence": False, "max.in.flight": IN_FLIGHT,
    })
    producer.produce(NAME, value=b"0", on_delivery=lambda err, _: err and errors.append(str(err)))
    producer.flush(60)
    member = Consumer(COMMON | {"group.id": NAME, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 500})
    member.subscribe([NAME])
    work = threading.Thread(target=send, args=(producer,))
    work.start()
    seen, again = set(), 0
    while not errors and (not sent or len(seen) < sent[0]):
        message = member.poll(0.2)
        if message is None:
            continue
        if message.error():
            if message.error().code() != KafkaError._PARTITION_EOF:
                errors.append(f"poll: {message.error()}")
            continue
        again += message.value() in seen
        seen.add(message.value())
    work.join()
    member.close()
    if errors:
        sys.exit(f"it read {len(seen)} records; errors: {errors[:5]}")
    print(sent[0], again)


main()
