"""Takes the clients written in Python through the shared list of checks.

A client is a Driver; what a check does and prints is here, by README.md one
folder up.
"""

import os
import re
import signal
import sys
import time
import traceback

import admins
import groups
import rows
import txns
from report import one_line, say, text_of, token

# Drivers have deadlines of their own, which are shorter; this one interrupts a
# library that does not keep to them.
CHECK_DEADLINE = 20

BOOTSTRAP = os.environ["QUEEN_EDGE_BOOTSTRAP"]
CA = os.environ["QUEEN_EDGE_CA"]
READ_TOPIC = os.environ["COMPAT_READ_TOPIC"]


class Skip(Exception):
    """A client cannot do a thing at all."""


class Driver:
    """One client library. Every method makes what it needs and closes it."""

    name = ""
    version = ""
    cannot = {}

    def brokers(self, token):
        """Log in and return the addresses of all brokers."""
        raise NotImplementedError

    def refused(self, token):
        """Try to log in and return all that a user is shown of the refusal."""
        raise NotImplementedError

    def produce(self, token, topic, records, codec, idempotent):
        """Write records to partition 0, in order."""
        raise NotImplementedError

    def read(self, token, topic, n, offsets):
        """Read n records of partition 0 from each of the offsets, one after the
        other with one consumer."""
        raise NotImplementedError

    def offset_at(self, token, topic, ms):
        """Look a time up in partition 0."""
        raise NotImplementedError

    def end(self, token, topic):
        """Return the end offset of partition 0."""
        raise NotImplementedError

    def topics(self, token):
        """List all topics."""
        raise NotImplementedError

    def member(self, token, group, topic, instance=None, cooperative=False):
        """Make a groups.Member that reads a topic, from its start where nothing
        is committed."""
        raise NotImplementedError

    def admin(self, token):
        """Log in as an admins.Admin."""
        raise Skip("its folder does not drive administration")

    def transactional(self, token, id):
        """Make a txns.Transactional."""
        raise Skip("its folder does not drive transactions")

    def records(self, lines, check):
        """Return the records of a check that this client can write."""
        return [record for line, id, record in lines if line == check and id not in self.cannot]

    def named(self, check):
        """Return the name of what a check makes: a topic, a group, a transactional id."""
        return re.sub(r"[^A-Za-z0-9._-]", "_", f"{os.environ['COMPAT_RUN']}-{self.name}-{self.version}-{check}")


def run(driver):
    """Take a client through all checks."""
    if groups.MEMBER in os.environ:
        groups.Groups(driver, say, token).be_member(os.environ[groups.MEMBER])
        return
    Block(driver).run()


class Block:
    def __init__(self, driver):
        self.driver = driver
        self.lines = rows.read(os.environ["COMPAT_DATASET"])

    def run(self):
        say("client", self.driver.name, self.driver.version)
        for what, why in self.driver.cannot.items():
            say("cannot", what + ":", why)
        checks = {
            "connect": self.connect,
            "bad-token": lambda check: self.refusal(check, "not-a-token"),
            "missing-scope": lambda check: self.refusal(check, token("ACME_NOREAD")),
            "scope-produce": self.scope_produce,
            "scope-consume": self.scope_consume,
            "create-by-produce": self.produce,
        }
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            checks["codec-" + codec] = self.codec
        for check in ("keys-and-nulls", "headers", "timestamps", "sizes"):
            checks[check] = self.produce
        checks["consume"] = self.consume
        checks["seek"] = self.seek
        checks["by-time"] = self.by_time
        checks["isolation"] = self.isolation
        checks["idempotent"] = self.idempotent
        for check, do in checks.items():
            one(check, do)
        for check, do in groups.Groups(self.driver, say, token).checks().items():
            one(check, do, groups.GROUP_WAIT)
        for check, do in {**admins.Admins(self.driver).checks(), **txns.Transactions(self.driver, self.lines).checks()}.items():
            one(check, do)

    def connect(self, check):
        brokers = self.driver.brokers(token("ACME"))
        if brokers != [BOOTSTRAP]:
            raise AssertionError(f"brokers {brokers}, want {BOOTSTRAP}")

    def refusal(self, check, password):
        say("said", check, one_line(self.driver.refused(password)))

    def scope_produce(self, check):
        record = rows.Record(value=b"never")
        try:
            self.driver.produce(token("ACME_CONSUME"), READ_TOPIC, [record], "none", False)
        except Exception as e:
            return say("said", check, text_of(e))
        raise AssertionError("it was allowed")

    def scope_consume(self, check):
        try:
            self.driver.read(token("ACME_PRODUCE"), READ_TOPIC, 1, [0])
        except Exception as e:
            return say("said", check, text_of(e))
        raise AssertionError("it was allowed")

    def produce(self, check, lines="", codec="none", idempotent=False):
        records = self.driver.records(self.lines, lines or check)
        topic = self.driver.named(check)
        say("topic", check, topic)
        self.driver.produce(token("ACME"), topic, records, codec, idempotent)

    def codec(self, check):
        self.produce(check, lines="codec", codec=check.removeprefix("codec-"))

    def idempotent(self, check):
        self.produce(check, idempotent=True)

    def consume(self, check):
        count = int(os.environ["COMPAT_READ_COUNT"])
        show(check, self.driver.read(token("ACME"), READ_TOPIC, count, [0]))

    def seek(self, check):
        show(check, self.driver.read(token("ACME"), READ_TOPIC, 1, [5, 1]))

    def by_time(self, check):
        topic = os.environ["COMPAT_TIME_TOPIC"]
        offset = self.driver.offset_at(token("ACME"), topic, int(os.environ["COMPAT_TIME"]))
        show(check, self.driver.read(token("ACME"), topic, 1, [offset]))

    def isolation(self, check):
        end = self.driver.end(token("GLOBEX"), READ_TOPIC)
        show(check, self.driver.read(token("GLOBEX"), READ_TOPIC, end, [0]))
        for topic in self.driver.topics(token("GLOBEX")):
            say("list", topic)


def one(check, do, deadline=CHECK_DEADLINE):
    """Run a check and print its result."""
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, deadline)
    try:
        do(check)
        result = ("pass", check)
    except Skip as e:
        result = ("skip", check + ":", one_line(e))
    except Exception as e:
        traceback.print_exc()
        result = ("fail", check + ":", text_of(e))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    say(*result)
    print(f"{check}: {time.monotonic() - start:.1f}s", file=sys.stderr, flush=True)


def late(*_):
    raise TimeoutError("the check did not end in time")


signal.signal(signal.SIGALRM, late)


def show(check, records):
    for r in records:
        say("read", check, r.offset, rows.form(r.key), rows.form(r.value), r.time, rows.headers_form(r.headers))
