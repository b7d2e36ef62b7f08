"""librdkafka, by confluent-kafka-python: a producer, and a member of a group that
reads meanwhile. The last line is how long brokers asked to wait in all, in ms."""

import os
import sys
import threading

from confluent_kafka import Consumer, KafkaError, Producer

NAME, RECORDS = os.environ["THROTTLED_NAME"], int(os.environ["THROTTLED_RECORDS"])
errors, waits = [], []


def on_error(err):
    errors.append(str(err))


COMMON = {
    "bootstrap.servers": os.environ["THROTTLED_ADDR"],
    "security.protocol": "SASL_SSL",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "throttled",
    "sasl.password": os.environ["THROTTLED_TOKEN"],
    "ssl.ca.location": os.environ["THROTTLED_CA"],
    "error_cb": on_error,
    "throttle_cb": lambda event: waits.append(event.throttle_time * 1000),
}


def on_delivery(err, _):
    if err is not None:
        errors.append(str(err))


def send(producer, first, to):
    for i in range(first, to):
        producer.produce(NAME, value=str(i).encode(), on_delivery=on_delivery)
        if producer.flush(60) != 0:
            errors.append("a record was not delivered in a minute")


def main():
    producer = Producer(COMMON | {"linger.ms": 0, "enable.idempotence": True})
    send(producer, 0, 1)
    member = Consumer(COMMON | {
        "group.id": NAME, "auto.offset.reset": "earliest", "enable.auto.commit": False,
        "session.timeout.ms": 6000, "heartbeat.interval.ms": 1000,
    })
    member.subscribe([NAME])
    rest = threading.Thread(target=send, args=(producer, 1, RECORDS))
    rest.start()
    got = 0
    while got < RECORDS and not errors:
        message = member.poll(1)
        if message is None:
            continue
        if message.error():
            if message.error().code() != KafkaError._PARTITION_EOF:
                errors.append(str(message.error()))
            continue
        got += 1
        member.commit(message, asynchronous=False)
    rest.join()
    member.close()
    if errors or got != RECORDS:
        sys.exit(f"it read {got} records; errors: {errors}")
    print(sum(waits))


main()
