"""The checks of administration."""

import os

from report import say, text_of, token


class Admin:
    """An administration that has logged in. A refusal is an exception."""

    def create_topic(self, topic, partitions, configs):
        raise NotImplementedError

    def topics(self):
        """List the names of all topics."""
        raise NotImplementedError

    def partitions(self, topic):
        """Return how many a topic has."""
        raise NotImplementedError

    def add_partitions(self, topic, total):
        """Raise a topic to so many."""
        raise NotImplementedError

    def delete_topic(self, topic):
        raise NotImplementedError

    def configs(self, topic):
        """Return the values of a topic's configs by their names."""
        raise NotImplementedError

    def set_config(self, topic, name, value):
        raise NotImplementedError

    def groups(self):
        """List the names of all groups."""
        raise NotImplementedError

    def members(self, group, topic):
        """Return the partitions of a topic that each member of a group holds."""
        raise NotImplementedError

    def offsets(self, group, topic):
        """Return the offsets that a group has committed, by partition."""
        raise NotImplementedError

    def set_offsets(self, group, topic, offsets):
        raise NotImplementedError

    def delete_offset(self, group, topic, partition):
        raise NotImplementedError

    def delete_group(self, group):
        raise NotImplementedError

    def close(self):
        raise NotImplementedError


class Admins:
    """The checks of one client."""

    def __init__(self, driver):
        self.driver = driver

    def checks(self):
        return {
            "admin-topics": self.with_admin(self.topics),
            "admin-configs": self.with_admin(self.configs),
            "admin-groups": self.with_admin(self.groups),
        }

    def with_admin(self, do):
        def check(name):
            admin = self.driver.admin(token("ACME"))
            try:
                do(admin, name)
            finally:
                admin.close()

        return check

    def named(self, what, check):
        say(what, check, self.driver.named(check))
        return self.driver.named(check)

    def topics(self, admin, check):
        topic = self.named("topic", check)
        admin.create_topic(topic, 2, {"retention.ms": "3600000"})
        expect(2, admin.partitions(topic))
        admin.add_partitions(topic, 3)
        expect(3, admin.partitions(topic))
        self.delete(check, admin.topics(), admin.delete_topic)

    def delete(self, check, names, remove):
        """Delete one of the things that are there to be deleted. Their names are
        not told: they are to be listed."""
        name = next(n for n in names if n.startswith(os.environ["COMPAT_DOOMED"]))
        remove(name)
        say("gone", check, name)

    def configs(self, admin, check):
        topic = self.named("topic", check)
        admin.create_topic(topic, 1, {})
        expect("-1", admin.configs(topic)["retention.ms"])
        admin.set_config(topic, "retention.ms", "7200000")
        try:
            admin.set_config(topic, "message.timestamp.type", "LogAppendTime")
        except Exception as e:
            say("said", check, text_of(e))
        else:
            raise AssertionError("what cannot be was allowed")
        for name, value in admin.configs(topic).items():
            say("config", check, name, value)

    def groups(self, admin, check):
        topic, group = os.environ["COMPAT_GROUP_TOPIC"], self.named("group", check)
        for i, held in enumerate(admin.members(os.environ["COMPAT_ALIVE_GROUP"], topic)):
            say("member", check, i, ",".join(map(str, held)) or "none")
        admin.set_offsets(group, topic, {0: 1, 1: 2, 2: 3})
        admin.set_offsets(group, topic, {0: 5})
        left = {0: 5, 1: 2, 2: 3}
        if "delete.admin-groups" not in self.driver.cannot:
            admin.delete_offset(group, topic, 2)
            del left[2]
        expect(left, admin.offsets(group, topic))
        self.delete(check, admin.groups(), admin.delete_group)


def expect(want, got):
    if want != got:
        raise AssertionError(f"want {want}, got {got}")
