"""The table of functions: what a statement may call, how Spark is asked for it, and what users read about it.

The table itself is ``function_list.txt``. A function takes one line and those indented under it::

    name(argument[, optional]), other_name -> TYPE | what it gives
      spark: template with {1}, {2} for the arguments
      example => its result as JSON

Without ``spark:`` Spark has the function under the same name; ``spark: name`` is another name; ``spark[2]:``
is for two arguments only. ``{time}`` in the template of an aggregate is the row's event time. The section
Refused names what is known and not built, with the reason and a hint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

AGGREGATES = "Aggregates"
ROW = "Record"
_FILE = Path(__file__).with_name("function_list.txt")
_HEAD = re.compile(r"(\w+)\((.*?)\)((?:, \w+)*) -> ([\w<>, ]+) \| (.+)")
_RULE = re.compile(r"spark(?:\[(\d)\])?: (.+)")


@dataclass(frozen=True, slots=True)
class Function:
    """A function that is built in.

    Attributes:
        name, aliases: lower case.
        signature: arguments as people are shown them, such as ``text[, n]``.
        least, most: how many arguments; ``most`` None = any number.
        returns: the result's type, or NUMBER or ANY where it follows the arguments.
        rules: number of arguments (None: any) to Spark name or template.
        examples: expressions with their results as JSON text.
    """

    name: str
    aliases: tuple[str, ...]
    signature: str
    least: int
    most: int | None
    returns: str
    category: str
    meaning: str
    rules: Mapping[int | None, str] = field(default_factory=dict)
    examples: tuple[tuple[str, str], ...] = ()

    @property
    def aggregate(self) -> bool:
        """Whether it gives one value for many rows."""
        return self.category == AGGREGATES

    @property
    def shown(self) -> str:
        """``name(arguments)``"""
        return f"{self.name}({self.signature})"

    def spark(self, arguments: int) -> str:
        """Spark's name for it, or a template, in a call of so many arguments."""
        return self.rules.get(arguments) or self.rules.get(None) or self.name


@dataclass(frozen=True, slots=True)
class Refusal:
    """A function that is known by name and not built."""

    name: str
    reason: str
    hint: str | None


@cache
def functions() -> Mapping[str, Function]:
    """Every name, aliases too, to its function."""
    return {name: f for f in table() for name in (f.name, *f.aliases)}


@cache
def table() -> tuple[Function, ...]:
    """The functions in the order of the file."""
    return tuple(_read())


@cache
def refusals() -> Mapping[str, Refusal]:
    """Names that are refused with a reason of their own."""
    found = {}
    for category, line, _ in _entries():
        if category == "Refused":
            names, _, rest = line.partition(": ")
            reason, _, hint = rest.partition("|")
            for name in names.split(", "):
                found[name] = Refusal(name, reason.strip(), hint.strip() or None)
    return found


def _entries() -> Iterator[tuple[str, str, list[str]]]:
    """Category, first line and indented lines of each entry."""
    category, head, rest = "", "", list[str]()
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            rest.append(line.strip())
            continue
        if head:
            yield category, head, rest
        head, rest = "", []
        if line.startswith("# "):
            category = line[2:]
        elif line:
            head = line
    if head:
        yield category, head, rest


def _read() -> Iterator[Function]:
    for category, line, rest in _entries():
        if category == "Refused":
            continue
        head = _HEAD.fullmatch(line)
        if head is None:
            raise ValueError(f"function_list.txt: {line!r} is no function")
        name, signature, others, returns, meaning = head.groups()
        rules: dict[int | None, str] = {}
        examples = []
        for text in rest:
            if rule := _RULE.fullmatch(text):
                rules[int(rule[1]) if rule[1] else None] = rule[2]
            else:
                example, _, result = text.partition(" => ")
                examples.append((example, result))
        least, most = _arity(signature)
        aliases = tuple(others.split(", ")[1:])
        yield Function(
            name, aliases, signature, least, most, returns, category, meaning, rules, tuple(examples)
        )


def _arity(signature: str) -> tuple[int, int | None]:
    """``a, b[, c]`` takes 2 to 3, ``a, …`` one or more."""
    needed = re.sub(r"\[.*\]", "", signature).removesuffix("…").strip(", ")
    least = len([part for part in needed.split(",") if part.strip()])
    if "…" in signature:
        return least, None
    return least, len([part for part in re.sub(r"[\[\]]", "", signature).split(",") if part.strip()])


def known_names() -> Iterable[str]:
    """Every name that may be called, for suggestions."""
    return [*functions(), "cast", "try_cast"]
