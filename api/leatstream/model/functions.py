"""Functions that users bring: their source text, and what SQL may call of it."""

from __future__ import annotations

from dataclasses import dataclass

from leatstream.model.objects import Column, Meta
from leatstream.model.types import DataType

PYTHON, JAVA = "python", "java"
LONGEST_SOURCE = 512 * 1024
DEFAULT_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSource:
    """A file with functions.

    Attributes:
        file: its name, such as ``scores.py``; the suffix decides the language.
        language: ``python`` or ``java``.
        content: the text; of a jar its base64.
        digest: SHA-256 (hex) of the content.
    """

    meta: Meta
    name: str
    file: str
    language: str
    content: str
    digest: str
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFunction:
    """A function that SQL may call.

    Attributes:
        arguments: names and types; a call's arguments must fit them without loss.
        source: name of the function source.
        handler: the function, or class for an aggregate, in the source; of Java the class with its package.
        aggregate: whether it gives one value for many rows.
        timeout_seconds: how long its calls may take together in one partition of one batch; of Java no calls.
        language: ``python`` or ``java``.
    """

    meta: Meta
    name: str
    arguments: tuple[Column, ...]
    returns: DataType
    source: str
    handler: str
    aggregate: bool
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    comment: str | None = None
    language: str = PYTHON

    @property
    def signature(self) -> str:
        """Arguments as SQL writes them."""
        return ", ".join(f"{a.name} {a.type}" for a in self.arguments)


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """A user's definition of a function; without a language, its source decides."""

    arguments: tuple[Column, ...]
    returns: DataType
    source: str
    handler: str
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    comment: str | None = None
    language: str | None = None
