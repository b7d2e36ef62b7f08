"""Every call of the official Python client against a cell. Writes a line for
each: "works <call>", "fails <call>: <why>" or, for what the embedded cell is known
not to serve, "absent <call>: <what the client got>"."""

import asyncio
import base64
import contextlib
import os
import sys

from queen import Queen

URL = os.environ["QUEEN_EDGE_CELL_URL"]
TOKEN = os.environ["QUEEN_EDGE_TOKEN_ACME"]
OTHER = os.environ["QUEEN_EDGE_TOKEN_GLOBEX"]
KAFKA_WROTE = os.environ["NATIVE_KAFKA_WROTE"]  # a topic with one record: key k, value v, header h=x
FOR_KAFKA = os.environ["NATIVE_FOR_KAFKA"]  # a topic to push to

calls = []


def call(name):
    def register(f):
        calls.append((name, f))
        return f

    return register


def eq(got, want, what="got"):
    if got != want:
        raise AssertionError(f"{what}: {got!r}, want {want!r}")


def data(messages):
    return [m["data"] for m in messages]


def quiet(q):
    """A pop that does not wait."""
    return q.wait(False)


async def push(c, queue, *values, partition=None):
    q = c.queue(queue)
    if partition is not None:
        q = q.partition(partition)
    results = await q.push([{"data": v} for v in values])
    eq([r["status"] for r in results], ["queued"] * len(values))


@call("queue(q).create()")
async def _(c):
    r = await c.queue("created").config({"lease_time": 7, "retry_limit": 1}).create()
    eq((r["configured"], r["options"]["leaseTime"], r["options"]["retryLimit"]), (True, 7, 1))


@call("queue(q).push()")
async def _(c):
    r = await c.queue("pushed").push([{"data": {"n": 1}}, {"data": None}, {"payload": "text"}])
    eq([(i["status"], i["offset"]) for i in r], [("queued", 0), ("queued", 1), ("queued", 2)])


@call("queue(q).push() with a transactionId again")
async def _(c):
    item = {"data": 1, "transactionId": "once"}
    eq([(await c.queue("dedup").push([item]))[0]["status"] for _ in range(2)], ["queued", "duplicate"])


@call("queue(q).buffer().push() and flush_buffer()")
async def _(c):
    q = c.queue("buffered").buffer({"message_count": 100, "time_millis": 60000})
    for n in range(3):
        eq((await q.push([{"data": n}]))["buffered"], True)
    await c.queue("buffered").flush_buffer()
    eq(data(await quiet(c.queue("buffered").batch(10)).pop()), [0, 1, 2])


@call("queue(q).pop()")
async def _(c):
    await push(c, "popped", {"n": 1}, {"n": 2})
    got = await c.queue("popped").batch(10).pop()
    eq(data(got), [{"n": 1}, {"n": 2}])
    for m in got:
        for member in ("transactionId", "partitionId", "leaseId", "queue", "partition", "createdAt", "retryCount"):
            if m.get(member) is None:
                raise AssertionError(f"{member} is missing in {m}")
    eq(await quiet(c.queue("popped").batch(10)).pop(), [], "while the lease lasts")


@call("queue(q).partition(p).pop()")
async def _(c):
    await push(c, "lanes", "a", partition="a")
    await push(c, "lanes", "b", partition="b")
    got = await c.queue("lanes").partition("b").batch(10).pop()
    eq([(m["partition"], m["data"]) for m in got], [("b", "b")])
    eq((await c.ack(got))["success"], True)


@call("queue(q).wait(True).pop() of a queue that is not there yet")
async def _(c):
    waiting = asyncio.create_task(c.queue("woken").timeout_millis(30000).pop())
    await asyncio.sleep(0)
    await push(c, "woken", "now")
    eq(data(await waiting), ["now"])


@call("queue().namespace().task().pop()")
async def _(c):
    await c.queue("named").namespace("ns").task("t").create()
    await push(c, "named", 1)
    eq(data(await quiet(c.queue().namespace("ns").task("t")).pop()), [1])


@call("queue(q).partitions(n).pop(), one lease")
async def _(c):
    for p in "abc":
        await push(c, "wide", p, partition=p)
    got = await c.queue("wide").partitions(3).batch(10).pop()
    eq((sorted(data(got)), len({m["leaseId"] for m in got})), (["a", "b", "c"], 1))
    eq((await c.renew(got))[0]["renewed"], 3)
    eq((await c.ack(got))["success"], True)


@call("queue(q).pop_result(), autopilot")
async def _(c):
    await push(c, "auto", *range(5))
    r = await c.queue("auto").group("g").pop_result()
    eq(data(r.messages), list(range(5)))
    if not r.autopilot or r.autopilot.batch < 5 or r.autopilot.partitions < 1:
        raise AssertionError(f"{r.autopilot}")


@call("queue(q).commit_on_delivery().pop()")
async def _(c):
    await push(c, "atmostonce", 1)
    got = await quiet(c.queue("atmostonce").commit_on_delivery()).pop()
    eq((data(got), got[0].get("leaseId")), ([1], None))
    eq(await quiet(c.queue("atmostonce")).pop(), [])


@call("queue(q).conflation().pop()")
async def _(c):
    await push(c, "conflated", 1, 2, 3)
    q = quiet(c.queue("conflated").group("g").conflation())
    got = await q.pop()
    eq(data(got), [3])
    eq((await c.ack(got, True, {"group": "g"}))["success"], True)
    eq(await q.pop(), [])


@call("queue(q).group(g), subscription_mode and subscription_from")
async def _(c):
    await push(c, "subscribed", "old")
    eq(await quiet(c.queue("subscribed").group("new").subscription_mode("new")).pop(), [])
    eq(await quiet(c.queue("subscribed").group("now").subscription_from("now")).pop(), [])
    await push(c, "subscribed", "new")
    for group, want in (("new", ["new"]), ("now", ["new"]), ("all", ["old", "new"])):
        eq(data(await quiet(c.queue("subscribed").group(group).batch(10)).pop()), want, group)


@call("ack(message)")
async def _(c):
    await push(c, "acked", 1, 2)
    for n in (1, 2):
        got = await quiet(c.queue("acked").batch(1).partitions(1)).pop()
        eq(data(got), [n])
        eq((await c.ack(got[0]))["success"], True)
    eq(await quiet(c.queue("acked")).pop(), [])


@call("ack([messages])")
async def _(c):
    await push(c, "ackedall", 1, 2, 3)
    got = await quiet(c.queue("ackedall").group("g").batch(10)).pop()
    eq((await c.ack(got, True, {"group": "g"}))["success"], True)
    eq(await quiet(c.queue("ackedall").group("g")).pop(), [])
    eq((await c.ack(got, True, {"group": "g"}))["success"], False, "the lease is over")


@call("ack([messages]) with a verdict of its own for each")
async def _(c):
    await push(c, "mixed", 1, 2, 3)
    got = await quiet(c.queue("mixed").batch(10)).pop()
    got[1]["_status"], got[1]["_error"] = False, "not today"
    eq((await c.ack(got))["success"], True)
    again = await quiet(c.queue("mixed").batch(10)).pop()
    eq([(m["data"], m["retryCount"]) for m in again], [(2, 1)])


@call("ack(message, False)")
async def _(c):
    await push(c, "failed", 1)
    for count in range(2):
        got = await quiet(c.queue("failed")).pop()
        eq([(m["data"], m["retryCount"]) for m in got], [(1, count)])
        eq((await c.ack(got[0], False, {"error": "no"}))["success"], True)


@call("ack(message, 'dlq') and queue(q).dlq().get()")
async def _(c):
    await push(c, "dead", {"poison": 1})
    got = await quiet(c.queue("dead").group("g")).pop()
    r = await c.ack(got[0], "dlq", {"group": "g", "error": "poison"})
    eq((r["success"], r["dlq"]), (True, True))
    r = await c.queue("dead").dlq("g").limit(10).get()
    eq((r["total"], [(m["data"], m["errorMessage"], m["consumerGroup"]) for m in r["messages"]]), (1, [({"poison": 1}, "poison", "g")]))
    eq(await quiet(c.queue("dead").group("g")).pop(), [])


@call("a message that fails more often than retryLimit is a dead letter")
async def _(c):
    await c.queue("limited").config({"retry_limit": 1}).create()
    await push(c, "limited", 1)
    for _ in range(2):
        await c.ack(await quiet(c.queue("limited")).pop(), False)
    eq(await quiet(c.queue("limited")).pop(), [])
    eq((await c.queue("limited").dlq().get())["total"], 1)


@call("renew(message) and renew(lease id)")
async def _(c):
    await push(c, "renewed", 1)
    got = await quiet(c.queue("renewed")).pop()
    r = await c.renew(got[0])
    eq((r["success"], r["renewed"], bool(r["newExpiresAt"])), (True, 1, True))
    eq((await c.renew(got[0]["leaseId"]))["success"], True)
    eq((await c.renew("00000000-0000-4000-8000-000000000000"))["success"], False)


@call("queue(q).consume(), each")
async def _(c):
    await push(c, "consumed", *range(5))
    seen = []

    async def handle(message):
        seen.append(message["data"])

    await c.queue("consumed").group("g").batch(2).each().limit(5).renew_lease(True, 1000).consume(handle)
    eq(seen, list(range(5)))
    eq(await quiet(c.queue("consumed").group("g")).pop(), [])


@call("queue(q).consume(), batches, a handler that raises once")
async def _(c):
    await push(c, "raising", 1, 2)
    seen = []

    async def handle(messages):
        seen.append(data(messages))
        if len(seen) == 1:
            raise RuntimeError("once")

    await c.queue("raising").batch(10).limit(4).consume(handle)
    eq(seen, [[1, 2], [1, 2]])


@call("another tenant sees nothing and acks nothing")
async def _(c):
    await push(c, "private", 1)
    got = await quiet(c.queue("private")).pop()
    with contextlib.redirect_stdout(sys.stderr):
        async with Queen(url=URL, bearer_token=OTHER) as other:
            eq(await quiet(other.queue("private")).pop(), [])
            eq((await other.ack(got[0]))["success"], False)
            eq((await other.renew(got[0]))["success"], False)
    eq((await c.ack(got[0]))["success"], True)


@call("kv.put, get, put_if_absent, incr, delete, once, check")
async def _(c):
    r = await c.kv.put("app", "a", {"x": 1}, forever=True)
    eq(bool(r), True)
    got = await c.kv.get("app", "a")
    eq((got["value"], got["version"]), ({"x": 1}, r["version"]))
    eq(bool(await c.kv.put_if_absent("app", "a", 2, ttl_seconds=60)), False)
    eq(bool(await c.kv.put("app", "a", 2, forever=True, expect=r["version"])), True)
    eq(bool(await c.kv.check("app", "a", expect=r["version"])), False)
    eq((await c.kv.incr("app", "n", delta=5, forever=True))["value"], 5)
    eq(bool(await c.kv.incr("app", "n", delta=5, max=9, forever=True)), False)
    eq([await c.kv.once("app", "gate", ttl_seconds=60) for _ in range(2)], [True, False])
    eq(bool(await c.kv.delete("app", "a")), True)
    eq((await c.kv.get("app", "a"))["found"], False)


@call("kv.get_many, get_prefix, list_all, batch")
async def _(c):
    await c.kv.batch([c.kv.op.put("many", f"k{n}", n, forever=True) for n in range(5)])
    r = await c.kv.get_many("many", ["k1", "k9"])
    eq(([row["value"] for row in r["rows"]], r["missing"]), ([1], ["k9"]))
    r = await c.kv.get_prefix("many", "k", limit=2)
    eq(([row["key"] for row in r["rows"]], r["truncated"]), (["k0", "k1"], True))
    eq(len(await c.kv.list_all("many", "k", limit=2)), 5)


@call("transaction().queue().push().kv.put().commit()")
async def _(c):
    r = await c.transaction().queue("txn").partition("p").push([{"data": 1}]).kv.put("txn", "k", 1, forever=True).commit()
    eq(bool(r), True)
    eq(data(await quiet(c.queue("txn").partition("p")).pop()), [1])


@call("transaction().ack().queue().push().commit()")
async def _(c):
    await push(c, "in", 1, 2)
    got = await quiet(c.queue("in").group("g").batch(10)).pop()
    r = await c.transaction().ack(got, "completed", {"consumer_group": "g"}).queue("out").push([{"data": "did"}]).kv.put("step", "k", 1, forever=True).commit()
    eq(([i["type"] for i in r["results"]], bool(r)), (["push", "ack", "ack", "kv"], True))
    eq(await quiet(c.queue("in").group("g")).pop(), [])
    eq(data(await quiet(c.queue("out")).pop()), ["did"])


@call("transaction().once().commit(), lost")
async def _(c):
    for want in (True, False):
        r = await c.transaction().once("gate", "m1", ttl_seconds=60).queue("gated").push([{"data": 1}]).commit()
        eq(bool(r), want)
    eq((r["reason"], r["kvReason"]), ("kv_precondition", "exists"))
    eq(data(await quiet(c.queue("gated").batch(10)).pop()), [1])


@call("transaction().ack() of a lease that is over raises, and nothing is pushed")
async def _(c):
    await push(c, "late", 1)
    got = await quiet(c.queue("late")).pop()
    await c.ack(got[0])
    try:
        await c.transaction().ack(got[0]).queue("never").push([{"data": 1}]).commit()
    except Exception as error:
        eq("lease" in str(error), True, str(error))
    else:
        raise AssertionError("it was committed")
    eq(await quiet(c.queue("never")).pop(), [])


@call("queue(q).fetch()")
async def _(c):
    await push(c, "fetched", *range(3), partition="p")
    r = await c.queue("fetched").fetch(["p", "none"], offsets={"p": 1})
    eq(([x["payload"] for x in r["p"]["records"]], r["p"]["nextOffset"], r["none"]["records"]), ([1, 2], 3, []))


@call("framed_pop (answered as JSON)")
async def _(c):
    with contextlib.redirect_stdout(sys.stderr):
        async with Queen(url=URL, bearer_token=TOKEN, framed_pop=True) as framed:
            await push(framed, "framed", 1)
            eq(data(await quiet(framed.queue("framed")).pop()), [1])


@call("queue(q).delete()")
async def _(c):
    await push(c, "deleted", 1)
    eq((await c.queue("deleted").delete())["deleted"], True)
    eq(await quiet(c.queue("deleted")).pop(), [])


@call("admin.list_queues, get_queue, get_queue_depth")
async def _(c):
    await push(c, "admin", 1, 2, partition="p")
    eq("admin" in [q["name"] for q in (await c.admin.list_queues())["queues"]], True)
    eq([p["name"] for p in (await c.admin.get_queue("admin"))["partitions"]], ["p"])
    got = await quiet(c.queue("admin").group("g").batch(1)).pop()
    await c.ack(got[0], True, {"group": "g"})
    d = await c.admin.get_queue_depth("admin", "g")
    eq((d["pending"], d["partitions"]), (1, [{"partition": "p", "pending": 1}]))


@call("admin.list_consumer_groups, get_consumer_group, get_lagging_consumers")
async def _(c):
    await push(c, "grouped", 1, 2)
    await quiet(c.queue("grouped").group("watched")).pop()
    for rows in (await c.admin.list_consumer_groups(), await c.admin.get_consumer_group("watched"), await c.admin.get_lagging_consumers()):
        eq([(r["kind"], r["totalLag"]) for r in rows if r["name"] == "watched"], [("queen", 2)])


@call("admin.seek_consumer_group")
async def _(c):
    await push(c, "sought", 1, 2)
    q = quiet(c.queue("sought").group("g").batch(10))
    await c.ack(await q.pop(), True, {"group": "g"})
    await c.admin.seek_consumer_group("g", "sought", {"timestamp": "2020-01-01T00:00:00Z"})
    eq(data(await q.pop()), [1, 2])
    await c.admin.seek_consumer_group("g", "sought", {"toEnd": True})
    eq(await q.pop(), [])


@call("delete_consumer_group, admin.delete_consumer_group_for_queue, update_consumer_group_timestamp")
async def _(c):
    await push(c, "reset", 1)
    q = quiet(c.queue("reset").group("g").batch(10))
    for forget in (
        lambda: c.delete_consumer_group("g"),
        lambda: c.admin.delete_consumer_group_for_queue("g", "reset"),
        lambda: c.delete_consumer_group("g", False),
    ):
        await c.ack(await q.pop(), True, {"group": "g"})
        eq(await q.pop(), [])
        await forget()
    eq(data(await q.pop()), [1])
    await c.delete_consumer_group("g", False)
    await c.update_consumer_group_timestamp("g", "2099-01-01T00:00:00Z")
    eq(await q.pop(), [])


@call("what a Kafka client wrote is popped as {k,v,h,t}")
async def _(c):
    got = await quiet(c.queue(KAFKA_WROTE).batch(10)).pop()
    eq(len(got), 1)
    d = got[0]["data"]
    eq(sorted(d), ["h", "k", "t", "v"])
    eq((base64.b64decode(d["k"]), base64.b64decode(d["v"]), d["h"], got[0]["partition"]),
       (b"k", b"v", [{"k": "h", "v": base64.b64encode(b"x").decode()}], "0"))


@call("what it pushes to partition 0 is for a Kafka client")
async def _(c):
    await push(c, FOR_KAFKA, {"from": "python"}, "text", partition="0")


absent = [
    ("queue(q).changed_since()", lambda c: c.queue("pushed").changed_since()),
    ("timers", lambda c: c.timer("later").key("k").payload(1).after_ms(1000).schedule()),
    ("lock(), semaphore()", lambda c: c.lock("l", ttl_seconds=5).acquire()),
    ("ephemeral", lambda c: c.ephemeral.push("inbox", [{"data": 1}])),
    ("admin.get_overview", lambda c: c.admin.get_overview()),
    ("admin.get_namespaces", lambda c: c.admin.get_namespaces()),
    ("admin.get_tasks", lambda c: c.admin.get_tasks()),
    ("admin.get_partitions", lambda c: c.admin.get_partitions()),
    ("admin.list_messages", lambda c: c.admin.list_messages()),
    ("admin.get_message", lambda c: c.admin.get_message("p", "t")),
    ("admin.delete_message", lambda c: c.admin.delete_message("p", "t")),
    ("admin.retry_message", lambda c: c.admin.retry_message("p", "t")),
    ("admin.get_trace_names", lambda c: c.admin.get_trace_names()),
    ("admin.get_status", lambda c: c.admin.get_status()),
    ("admin.get_queue_stats", lambda c: c.admin.get_queue_stats()),
    ("admin.get_analytics", lambda c: c.admin.get_analytics()),
    ("admin.refresh_consumer_stats", lambda c: c.admin.refresh_consumer_stats()),
    ("admin.health", lambda c: c.admin.health()),
    ("admin.metrics", lambda c: c.admin.metrics()),
    ("admin.get_system_metrics", lambda c: c.admin.get_system_metrics()),
]


async def binary_push():
    async with Queen(url=URL, bearer_token=TOKEN, binary_push=True, retry_attempts=1) as c:
        await c.queue("binary").push([{"data": 1}])


async def main():
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # the client prints
        async with Queen(url=URL, bearer_token=TOKEN, retry_attempts=1) as c:
            for name, run in calls:
                try:
                    await asyncio.wait_for(run(c), 40)
                    print("works", name, file=out, flush=True)
                except BaseException as error:  # noqa: BLE001
                    print(f"fails {name}: {type(error).__name__}: {error}".replace("\n", " "), file=out, flush=True)
            for name, run in absent + [("binary_push", lambda c: binary_push())]:
                try:
                    await asyncio.wait_for(run(c), 40)
                    print("works", name, file=out, flush=True)
                except Exception as error:  # noqa: BLE001
                    print(f"absent {name}: {error}".replace("\n", " "), file=out, flush=True)


asyncio.run(main())
