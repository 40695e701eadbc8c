"""What the parts of one SELECT over views share, and what each of them makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlglot import exp

from leatstream.errors import Faults, Position
from leatstream.model.objects import Relation
from leatstream.model.types import DataType
from leatstream.sql.snapshot.values import Parameters
from leatstream.sql.statements import Name

# The queries of WITH that a part sees, each with those that it sees itself.
Ctes = Mapping[str, tuple[exp.Expression, "Ctes"]]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a view's rows are.

    Attributes:
        table: SQL of the table, whose columns are ``c0``, ``c1``, …
        oldest: microseconds since 1970 before which rows no longer count; None where all do.
    """

    relation: Relation
    table: str
    oldest: int | None = None


@dataclass(slots=True)
class Made:
    """SQL of a part, and its columns ``o0``, ``o1``, …"""

    sql: str
    names: list[str]
    types: list[DataType | None]


@dataclass(slots=True)
class Shared:
    """One for a whole text.

    Attributes:
        resolve: finds a view; raises RequestError.
        now: what CURRENT_TIMESTAMP is.
        inputs: how many relations have been read so far, each of which is called after its number.
    """

    resolve: Callable[[Name], Source]
    now: datetime
    parameters: Parameters
    faults: Faults = field(default_factory=Faults)
    inputs: int = 0

    def refuse(self, what: str, position: Position | None, hint: str | None = None) -> None:
        """Note what does not work over views.

        Args:
            what: begins the message.
            position: where it stands.
            hint: what to do.
        """
        detail = f"{what} is not supported in a SELECT over materialized views."
        self.faults.add("unsupported", detail, position=position, hint=hint)

    def next_input(self) -> str:
        """What the next relation of FROM is called in the SQL."""
        self.inputs += 1
        return f"t{self.inputs - 1}"
