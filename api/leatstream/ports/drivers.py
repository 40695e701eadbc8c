"""Drivers: what starts them, what assigns them to queries, and the driver that analyzes SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from leatstream.plan.logical import AnalysisFailure, AnalyzedColumn, FunctionShape, ViewSchema


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """SQL that a driver analyzes over empty views."""

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
        """Analyze SQL over empty views; called while a statement is planned, and blocks until an answer.

        Args:
            views: name and columns of each view that the SQL reads.
            sql: one SELECT in the engine's dialect.
            timeout: seconds.
            functions: users' functions that the SQL calls.
            places: first and last character of remainders in the SQL; the answer's columns are then those
                remainders, each named by its place's number.

        Returns:
            The result's columns, or why the engine refuses the SQL.

        Raises:
            EngineError: ``engine-unavailable``: no driver answers in time.
        """

    def take(self, driver_id: str) -> AnalysisRequest | None:
        """The next request for a driver to answer, or None; called when an analyzer polls.

        Each request is given out once.
        """

    def complete(
        self, driver_id: str, request_id: str, result: list[AnalyzedColumn] | AnalysisFailure
    ) -> None:
        """Deliver a driver's answer; a second call does nothing.

        Args:
            driver_id: the driver that took the request.
            request_id: id of the request; an unknown or abandoned one is ignored.
            result: the columns, or why the SQL is refused.
        """


class Leases(Protocol):
    """Which queries this server runs, where several servers share a catalog."""

    def renew(self) -> frozenset[str] | None:
        """Extend the leases that are held and take free ones; called at the start of each reconcile pass.

        Returns:
            Ids of the queries that this server runs; None if it runs all of them.
        """

    def hand_over(self, query_id: str) -> None:
        """Offer a query to another server; called when this one has no driver for it. Idempotent.

        The lease stays here if there is no other server.
        """

    def close(self, kept: Collection[str] = ()) -> None:
        """Release all leases except ``kept``; called once, when the server stops.

        Other servers take released queries at once, and the others when their leases expire.
        """


@dataclass(frozen=True, slots=True)
class Sharing:
    """A query may share a driver with others; ``near`` is the driver to prefer while it has room."""

    near: str | None = None


class Drivers(Protocol):
    """Driver processes. They start ahead of need and run one query each, or several if shared.

    Safe for several threads. ``assign`` and the methods that end drivers are called by the reconcile pass;
    the methods with a ``driver_id`` also by requests of drivers.
    """

    def authenticate(self, driver_id: str, token: str) -> bool:
        """Whether the driver was started with this token; called for each request of a driver."""

    def report(self, driver_id: str, state: str, pid: int) -> None:
        """Note what a driver reports of itself; called at each of its polls. Idempotent.

        Args:
            driver_id: the driver.
            state: ``warming`` or ``idle``.
            pid: id of its process on its own machine.
        """

    def note_use(self, driver_id: str, use: Mapping[str, Any]) -> None:
        """Note what a driver uses of its machine; called at its polls and heartbeats. Idempotent.

        Args:
            driver_id: the driver; an unknown one is ignored.
            use: ``memory_bytes``, ``heap_bytes``, ``cpu_seconds_total``, as far as it knows them.
        """

    def role(self, driver_id: str) -> str | None:
        """``dedicated``, ``shared`` or ``analyzer``; None for a driver that is unknown and must end."""

    def assigned(self, driver_id: str) -> str | None:
        """Id of the query that has this dedicated driver, or None."""

    def shares(self, driver_id: str) -> Sequence[str]:
        """Ids of the queries that a shared driver was assigned, oldest first."""

    def assign(self, query_id: str, sharing: Sharing | None = None) -> str | None:
        """Assign an idle, warming or new driver to a query; called when a query is to start.

        Not idempotent: the caller keeps the id, and calls again only after ``let_go`` or ``release``.

        Returns:
            The driver's id; None while there is none to assign, for the reason in ``why_none``.
        """

    def why_none(self) -> str:
        """Why ``assign`` last returned None, worded to follow "waiting for a driver: "."""

    def release(self, driver_id: str, query_id: str) -> None:
        """Take a query from a driver, which becomes idle; called when a driver did not fetch it.

        Idempotent: does nothing if the driver has another query by now.
        """

    def let_go(self, driver_id: str, query_id: str) -> None:
        """Detach a query from its driver; called when its job has ended, or must not go on.

        The driver ends, unless it has other queries. Idempotent.
        """

    def keep(self, driver_id: str, query_id: str) -> bool:
        """Keep a driver for another query after its query ended in order; False if it must end.

        Idempotent: the driver asks again when the answer did not reach it.
        """

    def assignments(self) -> Sequence[tuple[str, str, float]]:
        """Each assignment: driver, id of the query, and seconds since then."""

    def serving(self, driver_id: str) -> float:
        """Seconds since it could take its newest query; 0 while it warms up, and for unknown drivers."""

    def process_id(self, driver_id: str) -> int | None:
        """Its process id; None for an unknown driver."""

    def is_alive(self, driver_id: str) -> bool:
        """Whether its process runs."""

    def runs(self, driver_id: str, query_id: str) -> bool:
        """Whether its process runs and, if it is shared, still has the query."""

    def has_crashed(self, driver_id: str) -> bool:
        """Whether its process crashed since this server started."""

    def never_served(self, driver_id: str) -> bool:
        """Whether it ended before it could take a query, so that no query is to blame.

        Only the server that observed the end knows; others return False.
        """

    def end(self, driver_id: str, *, grace: float = 0.0) -> None:
        """End the process and its children; returns when none of them runs. Idempotent.

        ``grace`` is the seconds in which it may end in order; 0 kills it.
        """

    def ready(self) -> bool:
        """Whether statements can be checked and run, even while every driver has a query; for ``/readyz``."""

    def warm(self) -> bool:
        """Whether a warm driver waits for a query, or none is configured to wait."""


class Launcher(Protocol):
    """Where drivers run: processes beside this server, or pods of a cluster.

    A driver is found by its id alone, even by a later process of the same server.
    """

    @property
    def for_one_query(self) -> bool:
        """Whether a dedicated driver sees the files of the query alone that it is started for."""

    def start(self, driver_id: str, role: str, token: str, query_id: str | None = None) -> int:
        """Start a driver; called once for each id.

        Args:
            driver_id: a new id.
            role: ``dedicated``, ``shared`` or ``analyzer``.
            token: the bearer token with which the driver calls the API.
            query_id: of the query that it is started for; None where others may get it.

        Returns:
            Its process id; 0 where it has none on this machine.

        Raises:
            EngineError: ``engine-unavailable``: it cannot be started now.
        """

    def is_alive(self, driver_id: str, pid: int) -> bool:
        """Whether it runs; True where that cannot be determined."""

    def ask_to_end(self, driver_id: str, pid: int, grace: float) -> None:
        """Request an orderly end and return at once; idempotent.

        Args:
            driver_id: the driver.
            pid: what ``start`` returned.
            grace: seconds after which it is killed.
        """

    def end(self, driver_id: str, pid: int, grace: float) -> None:
        """End it and all that it started; returns when nothing of it can write any more. Idempotent.

        Args:
            driver_id: the driver.
            pid: what ``start`` returned.
            grace: seconds in which it may end in order; 0 kills it.

        Raises:
            EngineError: ``engine-unavailable``: whether it has ended is unknown; call again.
        """

    def place(self, driver_id: str, role: str) -> Mapping[str, Any]:
        """Where a driver runs, for people; no I/O.

        Returns:
            ``launcher``, ``host`` or ``pod``, and ``heap_limit_bytes``.
        """

    def clear(self, driver_id: str) -> None:
        """Remove what a driver leaves after its end, except its log; idempotent."""

    def end_strangers(self, known: Collection[str]) -> None:
        """End and remove this server's drivers that are not in ``known``; called as the server starts."""

    def bound_log(self, driver_id: str) -> None:
        """Limit the size of a running driver's log; called every second."""

    def log(self, driver_id: str) -> str:
        """The driver's log, as far as it is kept; also after its end."""
