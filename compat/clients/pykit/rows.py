"""The data set and the forms of its fields."""

import dataclasses


@dataclasses.dataclass
class Record:
    """A record on its way in or out. Null is None; the time None leaves it to
    the client."""

    key: bytes | None = None
    value: bytes | None = None
    time: int | None = None
    headers: list = dataclasses.field(default_factory=list)
    offset: int = -1


def read(path):
    """Return check, id and record of every line."""
    out = []
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith("#"):
                continue
            check, id, key, value, time, headers = line.rstrip("\n").split("\t")
            record = Record(parse(key), parse(value), None if time == "now" else int(time), parse_headers(headers))
            out.append((check, id, record))
    return out


def parse(text):
    if text == "null":
        return None
    if text.startswith("x"):
        return bytes.fromhex(text[1:])
    n = int(text.removeprefix("r"))
    return bytes(ord("a") + i % 26 for i in range(n))


def parse_headers(text):
    if text == "none":
        return []
    pairs = (header.split("=") for header in text.split(","))
    return [(parse(name).decode(), parse(value)) for name, value in pairs]


def form(data):
    return "null" if data is None else "x" + bytes(data).hex()


def headers_form(headers):
    pairs = (form(name.encode()) + "=" + form(value) for name, value in headers)
    return ",".join(pairs) or "none"
