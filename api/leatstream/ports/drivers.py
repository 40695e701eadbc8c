"""Drivers: who starts them, who leases them to queries, and the one that analyzes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from leatstream.plan.logical import AnalysisFailure, AnalyzedColumn, FunctionShape, ViewSchema


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """SQL to analyze over empty views, as a driver is asked."""

    id: str
    views: Sequence[ViewSchema]
    sql: str
    functions: Sequence[FunctionShape] = ()
    places: Sequence[tuple[int, int]] = ()


class Analyzer(Protocol):
    """The engine's own analyzer, the authority on types. Answers come from a driver that pulls requests."""

    def analyze(
        self,
        views: Sequence[ViewSchema],
        sql: str,
        timeout: float,
        functions: Sequence[FunctionShape] = (),
        places: Sequence[tuple[int, int]] = (),
    ) -> list[AnalyzedColumn] | AnalysisFailure:
        """Analyze SQL over empty views. EngineError engine-unavailable if no driver answers in time.

        With ``places`` (first and last character) the answer's columns are the remainders that stand there,
        each named by its place's number.
        """

    def take(self, driver_id: str) -> AnalysisRequest | None:
        """The next request for a driver to answer, or None."""

    def complete(
        self, driver_id: str, request_id: str, result: list[AnalyzedColumn] | AnalysisFailure
    ) -> None:
        """A driver's answer; ignored if it was not given this request, or the asker has given up."""


class Leases(Protocol):
    """Which queries this server looks after, where several share a catalog."""

    def renew(self) -> frozenset[str] | None:
        """Take what is free, keep what is held: ids of this server's queries; None if all are its own."""

    def hand_over(self, query_id: str) -> None:
        """Let another server have a query that this one has no room for; it stays if there is no other."""

    def close(self, kept: Collection[str] = ()) -> None:
        """Give every query back but those: others take them at once, and those when their time is over."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """That a query may have a driver together with others; ``near``: that driver if it has room."""

    near: str | None = None


class Drivers(Protocol):
    """Driver processes: started ahead, given one query at a time, or several if shared; ended for certain."""

    def authenticate(self, driver_id: str, token: str) -> bool:
        """Whether this is the token the driver was started with."""

    def report(self, driver_id: str, state: str, pid: int) -> None:
        """What a polling driver says of itself: ``warming`` or ``idle``."""

    def role(self, driver_id: str) -> str | None:
        """``dedicated``, ``shared`` or ``analyzer``; None for a driver that should not be there."""

    def assigned(self, driver_id: str) -> str | None:
        """Id of the query this driver alone was given, or None."""

    def shares(self, driver_id: str) -> Sequence[str]:
        """Ids of the queries that a shared driver was given, in that order."""

    def assign(self, query_id: str, sharing: Sharing | None = None) -> str | None:
        """Give an idle, warming or new driver to a query; its id, or None while none may be had."""

    def why_none(self) -> str:
        """What kept ``assign`` from giving a driver, as words behind "waiting for a driver: "."""

    def release(self, driver_id: str, query_id: str) -> None:
        """Take a query back from a driver, which waits for work again; nothing, if it has another by now."""

    def let_go(self, driver_id: str, query_id: str) -> None:
        """The driver is done with a query: it ends, unless it has others, or another one by now."""

    def keep(self, driver_id: str, query_id: str) -> bool:
        """Have a driver whose query has ended in order wait for another one; False if it is to end."""

    def assignments(self) -> Sequence[tuple[str, str, float]]:
        """Driver, id of the query it was given, and seconds since then."""

    def serving(self, driver_id: str) -> float:
        """Seconds since it could take its newest query; 0 while it warms up, or is not known."""

    def process_id(self, driver_id: str) -> int | None:
        """Its process id; None for a driver that is not known."""

    def is_alive(self, driver_id: str) -> bool:
        """Whether its process is there."""

    def runs(self, driver_id: str, query_id: str) -> bool:
        """Whether its process is there and, if it is shared, still has the query."""

    def has_crashed(self, driver_id: str) -> bool:
        """Whether its process has ended by itself, and not in order, since this server is there."""

    def never_served(self, driver_id: str) -> bool:
        """Whether it has ended, or was ended, before it could take anything: no query is to blame for that.

        Known only to the server that has seen it; another one has no reason to say so.
        """

    def end(self, driver_id: str, *, grace: float = 0.0) -> None:
        """End the process and its children; returns when they are gone."""

    def ready(self) -> bool:
        """Whether statements can be checked and run, also while every driver has a query."""

    def warm(self) -> bool:
        """Whether a warm driver waits for a query, or none is kept."""


class Launcher(Protocol):
    """Where drivers run: processes beside this server, or pods of a cluster.

    A driver is found by its id alone, also by a later process of the same server.
    """

    def start(self, driver_id: str, role: str, token: str) -> int:
        """Start a driver; its process id, 0 where it has none on this machine.

        Raises:
            EngineError: ``engine-unavailable``, it cannot be started now.
        """

    def is_alive(self, driver_id: str, pid: int) -> bool:
        """Whether it runs or may still run; where that cannot be seen it does."""

    def ask_to_end(self, driver_id: str, pid: int, grace: float) -> None:
        """Have it end in order within ``grace`` seconds, without waiting for that."""

    def end(self, driver_id: str, pid: int, grace: float) -> None:
        """End it and all that it started; returns when nothing of it is left that could write.

        ``grace`` is the seconds in which it may end in order; 0 = it is killed.

        Raises:
            EngineError: ``engine-unavailable``, it cannot be told that it has ended.
        """

    def clear(self, driver_id: str) -> None:
        """Take away what a driver that has ended leaves, except for its log."""

    def end_strangers(self, known: Collection[str]) -> None:
        """End and clear away drivers of this server that are none of these, as a server starts."""

    def bound_log(self, driver_id: str) -> None:
        """See that the log of one that runs does not grow without end; asked every second."""

    def log(self, driver_id: str) -> str:
        """What it has said, as far as that is kept, also after its end."""
