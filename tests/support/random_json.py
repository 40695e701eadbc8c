"""Records of random columns, right ones and nearly right ones, in many spellings of the same JSON."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from value_cases import CASES

from leatstream.model.types import DataType, parse_type

_BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
_PLAIN = (
    *("BOOLEAN", *_BITS, "FLOAT", "DOUBLE", "VARCHAR", "BYTES", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"),
    *("DECIMAL(38, 2)", "DECIMAL(38, 0)", "DECIMAL(38, 38)", "DECIMAL(18, 6)", "DECIMAL(5, 5)", "DECIMAL"),
)
_TEXTS = (
    "",
    "a",
    "19.90",
    "0",
    "-0",
    "1.0E5",
    "{",
    "[1.0]",
    '"Infinity"',
    "?",
    "ü€😀",
    "a,b:}",
    '\\"',
    "\n",
    "null",
    "12",
    " ",
)
_TAILS = (b"",) * 12 + (b" ", b"\n", b"}", b"{}", b',"c0":1}', b"]", b"x", b"\x00", b'{"c0":1}')


def random_types(seed: random.Random) -> list[DataType]:
    """Every plain type, and nested ones of them."""
    found = [parse_type(kind) for kind in _PLAIN]
    for _ in range(3):
        inner = parse_type(seed.choice(_PLAIN))
        found.append(DataType("ARRAY", arguments=(inner,)))
        found.append(DataType("MAP", arguments=(DataType("VARCHAR"), parse_type(seed.choice(_PLAIN)))))
        fields = (DataType("ARRAY", arguments=(parse_type(seed.choice(_PLAIN)),)), DataType("VARCHAR"))
        found.append(DataType("STRUCT", arguments=fields, fields=("x", "y z")))
    return found


def random_record(seed: random.Random, columns: Sequence[tuple[str, str]]) -> bytes:
    """The bytes of a record, mostly with a few of the columns, sometimes no record at all."""
    named = [(name, parse_type(kind)) for name, kind in seed.sample(list(columns), seed.randint(0, 4))]
    members = [(name, random_value(seed, kind)) for name, kind in named]
    if seed.random() < 0.3:
        members.insert(seed.randint(0, len(members)), ("other", random_value(seed, DataType("VARCHAR"))))
    text = _object(seed, members).encode("utf-8", "surrogatepass")
    if seed.random() < 0.05:
        cut = seed.randrange(len(text))
        text = text[:cut] + text[cut + 1 :]
    return text + seed.choice(_TAILS)


def random_value(seed: random.Random, kind: DataType) -> str:
    """JSON of a value of the type, or of one that looks like it."""
    chance = seed.random()
    if chance < 0.05:
        return "null"
    if chance < 0.12:
        return seed.choice(CASES).text
    if kind.arguments:
        return _nested(seed, kind)
    if kind.kind in _BITS:
        bound = 1 << _BITS[kind.kind]
        return str(seed.choice([0, bound - 1, -bound, bound, seed.randrange(-bound, bound)]))
    if kind.kind in ("DECIMAL", "FLOAT", "DOUBLE"):
        number = random_number(seed)
        return f'"{number}"' if kind.kind == "DECIMAL" and seed.random() < 0.3 else number
    if kind.kind == "BOOLEAN":
        return seed.choice(["true", "false"])
    if kind.kind in ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return string(seed, _time(seed, kind.kind))
    if kind.kind == "BYTES":
        return string(
            seed,
            base64.b64encode(seed.randbytes(seed.randint(0, 7))).decode()[: seed.choice([None, None, -1])],
        )
    if seed.random() < 0.5:
        return string(seed, "".join(seed.choices(_TEXTS, k=seed.randint(0, 3))))
    return seed.choice([random_number(seed), "true", *(_any(seed, 3) for _ in range(2))])


def random_number(seed: random.Random) -> str:
    """A JSON number, now and then with more digits, or a larger exponent, than most types have."""
    whole = str(seed.randrange(10 ** seed.choice([0, 1, 3, 9, 20, 38])))
    digits = seed.choice([0, 1, 2, 6, 17, 38, 40])
    fraction = "".join(seed.choices("00123456789", k=digits)) if seed.random() < 0.6 else ""
    exponent = seed.choice(["", "", "", "", f"e{seed.randint(-40, 40)}", "E+2", "e-3", "e999", "e-99999999"])
    return seed.choice(["", "-"]) + whole + (f".{fraction}" if fraction else "") + exponent


def string(seed: random.Random, text: str) -> str:
    """A JSON string of a text, in one of its spellings."""
    return json.dumps(text, ensure_ascii=seed.random() < 0.5)


def _time(seed: random.Random, kind: str) -> str:
    at = datetime(1, 1, 1) + timedelta(microseconds=seed.randrange(3_155_378_975_999_999_999 // 10))
    if kind == "DATE":
        return str(at.date()) + seed.choice([*[""] * 8, " BC", "T00:00:00", " "])
    fraction = seed.choice(["", f".{seed.randrange(10**9):09d}", ".5", ".000001"])
    clock = at.strftime("%H:%M:%S") + fraction
    if kind == "TIME":
        return clock + seed.choice([*[""] * 8, "Z", " "])
    zone = seed.choice(["", "", "Z", " Z", "+00:00", "-0330", "+14", "+18:00", "+19:00", " UTC", "garbage"])
    return f"{at.date()}{seed.choice('T ')}{seed.choice([clock, clock[:5]])}{zone}"


def _nested(seed: random.Random, kind: DataType) -> str:
    if kind.kind == "ARRAY":
        items = [random_value(seed, kind.arguments[0]) for _ in range(seed.randint(0, 3))]
        return f"[{seed.choice([',', ' , '])}]" if not items and seed.random() < 0.1 else _list(seed, items)
    if kind.kind == "MAP":
        keys = seed.choices(["a", "b c", 'q"', "ü", "", "?"], k=seed.randint(0, 3))
        return _object(seed, [(key, random_value(seed, kind.arguments[1])) for key in keys])
    pairs = list(zip(kind.fields, kind.arguments, strict=True))
    return _object(seed, [(name, random_value(seed, part)) for name, part in pairs if seed.random() < 0.8])


def _any(seed: random.Random, depth: int) -> str:
    chance = seed.random()
    if depth == 0 or chance < 0.4:
        return seed.choice([random_number(seed), string(seed, seed.choice(_TEXTS)), "null", "false"])
    items = [_any(seed, depth - 1) for _ in range(seed.randint(0, 3))]
    return (
        _list(seed, items) if chance < 0.7 else _object(seed, [(seed.choice(_TEXTS), item) for item in items])
    )


def _list(seed: random.Random, items: Sequence[str]) -> str:
    blank, comma = seed.choice([("", ","), ("", ", "), (" ", " ,\t"), ("\n", ",\r\n")])
    return "[" + blank + comma.join(items) + blank + "]"


def _object(seed: random.Random, members: Sequence[tuple[str, Any]]) -> str:
    blank, comma, colon = seed.choice(
        [("", ",", ":"), ("", ", ", ": "), (" ", " ,\t", " : "), ("\n", ",\n", ":\t")]
    )
    return (
        "{" + blank + comma.join(string(seed, name) + colon + value for name, value in members) + blank + "}"
    )
