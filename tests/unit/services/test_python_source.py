"""What a Python text offers is told from its syntax tree; nothing of it runs."""

from __future__ import annotations

import pytest

from leatstream.errors import RequestError
from leatstream.services.functions.python_source import check_handler, check_syntax

GOOD = """
import sys
sys.exit("this must never run")

def one(a): return a
def some(a, b=1, *rest): return a
def none(): return 1
def named(a, *, b): return a
async def later(a): return a
def many(a):
    yield a
def inner(a):
    def own():
        yield 1
    return list(own())

class Whole:
    def create(self): return 0
    def accumulate(self, acc, a, b): return acc
    def merge(self, acc, other): return acc
    def finish(self, acc): return acc

class Half:
    def create(self): return 0

class Wrong(Half):
    def create(self): return 0
    def accumulate(self, acc): return acc
    def merge(self, acc, other): return acc
    def finish(self, acc): return acc
"""


@pytest.mark.parametrize(
    ("handler", "arguments", "aggregate"),
    [
        ("one", 1, False),
        ("some", 1, False),
        ("some", 9, False),
        ("none", 0, False),
        ("inner", 1, False),
        ("Whole", 2, True),
    ],
)
def test_fits(handler: str, arguments: int, aggregate: bool) -> None:
    assert check_handler(GOOD, "x.py", handler, arguments) is aggregate


@pytest.mark.parametrize(
    ("handler", "arguments", "detail"),
    [
        ("gone", 1, "x.py has no top-level function or class gone."),
        ("one", 2, "one (line 5 of x.py) takes 1 arguments, SQL would give 2."),
        ("some", 0, "some (line 6 of x.py) takes 2 arguments, SQL would give 0."),
        ("named", 1, "named (line 8 of x.py) has arguments that can be given by name only: b."),
        ("later", 1, "later (line 9 of x.py) must return its value: no async def, no yield."),
        ("many", 1, "many (line 10 of x.py) must return its value: no async def, no yield."),
        ("Whole", 1, "Whole.accumulate (line 17 of x.py) takes 3 arguments, SQL would give 2."),
        ("Half", 1, "The class Half (line 23 of x.py) has no method accumulate, merge, finish."),
        ("Wrong", 1, "Wrong.accumulate (line 26 of x.py) takes 1 arguments, SQL would give 2."),
    ],
)
def test_misfits_name_the_line(handler: str, arguments: int, detail: str) -> None:
    with pytest.raises(RequestError) as caught:
        check_handler(GOOD, "x.py", handler, arguments)
    assert caught.value.detail == detail


@pytest.mark.parametrize("text", ["def f(:", "x = 1\n y", "(" * 300, "\0"])
def test_no_python(text: str) -> None:
    with pytest.raises(RequestError, match="is no Python"):
        check_syntax(text, "x.py")
