"""The checks of transactions. Which offsets they commit, and for what: README.md
one folder up."""

import os

import rows
from report import say, text_of, token


class Transactional:
    """A transactional producer. Making one fences those of the same id."""

    def begin(self):
        raise NotImplementedError

    def produce(self, topic, records):
        """Write records to partition 0, in order, and see that they are taken."""
        raise NotImplementedError

    def offsets(self, group, topic, offsets):
        """Have the transaction commit offsets, by partition, for a group."""
        raise NotImplementedError

    def commit(self):
        raise NotImplementedError

    def abort(self):
        raise NotImplementedError

    def close(self):
        raise NotImplementedError


class Transactions:
    """The checks of one client."""

    def __init__(self, driver, lines):
        self.driver, self.lines = driver, lines

    def checks(self):
        return {"txn-commit": self.commit, "txn-abort": self.abort, "txn-fenced": self.fenced}

    def commit(self, check):
        case = Case(self.driver, self.lines, check)
        producer = case.open()
        try:
            case.good(producer)
        finally:
            producer.close()

    def abort(self, check):
        case = Case(self.driver, self.lines, check)
        producer = case.open()
        try:
            case.never(producer)
            producer.abort()
            case.good(producer)
        finally:
            producer.close()

    def fenced(self, check):
        case = Case(self.driver, self.lines, check)
        first = case.open()
        case.never(first)
        second = case.open()
        try:
            case.good(second)
        finally:
            second.close()
        said = []
        late = [rows.Record(value=b"of a fenced one")]
        for what, step in (("records", lambda: first.produce(case.name, late)), ("commit", first.commit)):
            try:
                step()
            except Exception as e:
                said.append(f"{what}: {text_of(e)}")
        if len(said) < 2:
            raise AssertionError("a fenced producer goes on")
        say("said", check, "; ".join(said))


class Case:
    """What one check has: a topic, a group and a transactional id of one name."""

    def __init__(self, driver, lines, check):
        self.driver = driver
        self.name = driver.named(check)
        say("topic", check, self.name)
        say("group", check, self.name)
        self.records = driver.records(lines, check)
        self.topic = os.environ["COMPAT_GROUP_TOPIC"]

    def open(self):
        return self.driver.transactional(token("ACME"), self.name)

    def good(self, producer):
        """Do what is to be seen of each check."""
        producer.begin()
        producer.produce(self.name, self.records)
        producer.offsets(self.name, self.topic, {1: 4, 2: 7})
        producer.commit()

    def never(self, producer):
        """Begin what is not to be seen."""
        producer.begin()
        producer.produce(self.name, [rows.Record(value=b"never")])
        producer.offsets(self.name, self.topic, {0: 9})
