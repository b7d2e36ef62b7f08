"""The checks of consumer groups: members in threads of their own, and one in a
process that is killed."""

import os
import signal
import subprocess
import sys
import threading
import time

GROUP_WAIT = 45  # of one check
SESSION_MS = 6000  # of every member; the least that is allowed
MEMBER = "COMPAT_MEMBER"  # a process that is to be a member and be killed


class Member:
    """One member of a group. poll is called by one thread, over and over; the
    others while none polls, held at any time."""

    def __init__(self):
        self.lock = threading.Lock()  # guards the fields below
        self.partitions = set()
        self.told = 0

    def given(self, partitions):
        with self.lock:
            self.partitions |= set(partitions)
            self.told += 1

    def taken(self, partitions):
        with self.lock:
            self.partitions -= set(partitions)

    def held(self):
        with self.lock:
            return sorted(self.partitions), self.told

    def poll(self):
        """Return (partition, offset) of what has come within about 100 ms, a few
        records at most."""
        raise NotImplementedError

    def commit(self):
        """Commit what was polled."""
        raise NotImplementedError

    def close(self):
        """Leave the group; a static member's place is kept."""
        raise NotImplementedError


class Team:
    """Members that poll in threads of their own."""

    def __init__(self, join):
        self.join_one = join
        self.members = []
        self.stops = []
        self.error = None

    def join(self, **how):
        member = self.join_one(**how)
        over = threading.Event()

        def polls():
            try:
                while not over.is_set():
                    member.poll()
            except Exception as e:  # shown by settle
                self.error = self.error or e
            finally:
                member.close()

        thread = threading.Thread(target=polls)
        thread.start()
        self.members.append(member)
        self.stops.append((over, thread))
        return member

    def leave(self, i):
        del self.members[i]
        over, thread = self.stops.pop(i)
        over.set()
        thread.join()

    def close(self):
        for over, _ in self.stops:
            over.set()
        for _, thread in self.stops:
            thread.join()

    def settle(self):
        """Wait until every member was told what it holds, each partition is held
        by one of them, and none holds nothing that need not."""
        deadline = time.monotonic() + GROUP_WAIT
        while True:
            states = [m.held() for m in self.members]
            held = sorted(p for partitions, _ in states for p in partitions)
            idle = sum(1 for partitions, _ in states if not partitions)
            told = all(told for _, told in states)
            if told and held == [0, 1, 2, 3] and idle == max(len(states) - 4, 0):
                return
            if self.error:
                raise self.error
            if time.monotonic() > deadline:
                raise TimeoutError(f"the group did not settle: {states}")
            threading.Event().wait(0.02)

    def show(self, say, check):
        for i, m in enumerate(self.members):
            say("member", check, i, ",".join(map(str, m.held()[0])) or "none")


class Groups:
    """The checks. say prints a line, token finds a token."""

    def __init__(self, driver, say, token):
        self.driver, self.say, self.token = driver, say, token
        self.topic = os.environ["COMPAT_GROUP_TOPIC"]

    def checks(self):
        return {
            "group-resume": self.resume,
            "group-3": lambda check: self.share(check, 3),
            "group-10": lambda check: self.share(check, 10),
            "group-cooperative": lambda check: self.share(check, 3, cooperative=True),
            "group-killed": self.killed,
            "group-static": self.static,
        }

    def name(self, check):
        self.say("group", check, self.driver.named(check))
        return self.driver.named(check)

    def member(self, group, **how):
        return self.driver.member(self.token("ACME"), group, self.topic, **how)

    def resume(self, check):
        group = self.name(check)
        left = 4 * int(os.environ["COMPAT_GROUP_COUNT"])
        for stop in (left // 2, 0):
            member = self.member(group)
            try:
                while left > stop:
                    for partition, offset in member.poll():
                        self.say("got", check, partition, offset)
                        left -= 1
                member.commit()
            finally:
                member.close()

    def share(self, check, n, **how):
        group = self.name(check)
        team = Team(lambda: self.member(group, **how))
        try:
            for _ in range(n):
                team.join()
                if how.get("cooperative"):
                    team.settle()  # so that partitions change hands
            team.settle()
            team.show(self.say, check)
        finally:
            team.close()

    def killed(self, check):
        group = self.name(check)
        victim = subprocess.Popen(
            [sys.executable, sys.argv[0]], env={**os.environ, MEMBER: group}, stdout=subprocess.PIPE, text=True
        )
        team = Team(lambda: self.member(group))
        try:
            stays = team.join()
            for line in victim.stdout:
                if line.strip() in ("1", "2", "3") and 0 < len(stays.held()[0]) < 4:
                    break
            victim.send_signal(signal.SIGKILL)
            team.settle()
            team.show(self.say, check)
        finally:
            victim.kill()
            victim.wait()
            team.close()

    def be_member(self, group):
        member = self.member(group)
        deadline = time.monotonic() + GROUP_WAIT
        while time.monotonic() < deadline:
            member.poll()
            print(len(member.held()[0]), flush=True)

    def static(self, check):
        group = self.name(check)
        team = Team(lambda instance: self.member(group, instance=instance))
        try:
            stays = team.join(instance="stays")
            team.join(instance="restarts")
            team.settle()
            before = stays.held()[1]
            team.leave(1)
            team.join(instance="restarts")
            team.settle()
            self.say("rebalances", check, before, stays.held()[1])
            team.show(self.say, check)
        finally:
            team.close()
