"""Leases on queries: which of several servers on one PostgreSQL catalog looks after which.

A server renews its leases while it lives. One that is silent keeps them until its drivers must have ended by
themselves (its ``orphan_seconds`` after their last word with it): only then they expire and another may take
its queries over, so that no two jobs of a query run side by side. Only the database's clock counts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta

import sqlalchemy as sa

from leatstream.errors import CatalogAway
from leatstream.storage.engine import ROW_LOCKS, is_away, is_busy, is_full, lock_writers, make_engine
from leatstream.storage.tables import drivers, queries, query_leases, servers

_log = logging.getLogger(__name__)
_FORGET = timedelta(days=1)
_DECLINED_SECONDS = 5.0


class CatalogLeases:
    """Leases in a PostgreSQL catalog (``ports.Leases``).

    Args:
        url: of the catalog.
        server: this server's id.
        checkpoints: what distinguishes the place of its checkpoints from any other.
        orphan_seconds: how long this server's drivers go on without it.
        lease_seconds: how long a server that is silent counts as one that lives.
    """

    def __init__(
        self, url: str, server: str, checkpoints: str, orphan_seconds: float, lease_seconds: float
    ) -> None:
        self._engine = make_engine(url).execution_options(**{ROW_LOCKS: True})
        self._server = server
        self._checkpoints = checkpoints
        self._lease = timedelta(seconds=lease_seconds)
        self._held = self._lease + timedelta(seconds=orphan_seconds)
        self._declined: dict[str, float] = {}
        self._over = threading.Event()
        # A pass over many queries may last longer than a lease, while their jobs are well.
        self._keeper = threading.Thread(target=self._keep_on, name="lease-keeper", daemon=True)

    def start(self) -> None:
        """Keep showing that this server lives, whatever else it does."""
        self._keeper.start()

    def join(self) -> bool:
        """Show that this server lives; False, and nothing done, if one lives with checkpoints elsewhere."""
        with self._engine.begin() as connection:
            lock_writers(connection)  # of two that start at once the second sees the first
            if any(place != self._checkpoints for place in self._others(connection).values()):
                return False
            self._show(connection)
            return True

    def others(self) -> dict[str, str]:
        """The other servers that live: id to the place of their checkpoints; CatalogAway."""
        with self._begin() as connection:
            return self._others(connection)

    @contextmanager
    def _begin(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            if is_away(error) or is_busy(error) or is_full(error):
                raise CatalogAway(str(error.orig)) from error
            raise

    def _others(self, connection: sa.Connection) -> dict[str, str]:
        statement = sa.select(servers.c.id, servers.c.checkpoints).where(
            servers.c.id != self._server, servers.c.seen_at > _now() - self._lease
        )
        return {row.id: row.checkpoints for row in connection.execute(statement)}

    def renew(self) -> frozenset[str]:
        """Show that this server lives, keep its leases, take what is free; its queries' ids. CatalogAway."""
        with self._begin() as connection:
            self._show(connection)
            self._keep(connection)
            self._take_new(connection)
            self._take_left(connection)
            # Of its own only: two servers that wait for each other's rows would stand still.
            gone = query_leases.c.query_id.not_in(sa.select(queries.c.id))
            connection.execute(_of(self._server).where(gone))
            held = sa.select(query_leases.c.query_id).where(query_leases.c.server == self._server)
            return frozenset(connection.execute(held).scalars())

    def hand_over(self, query_id: str) -> None:
        """Let another server have a query; it stays here if no other lives. CatalogAway."""
        if not self.others():
            return
        self._declined[query_id] = time.monotonic()
        with self._begin() as connection:
            connection.execute(_of(self._server).where(query_leases.c.query_id == query_id))

    def close(self, kept: Collection[str] = ()) -> None:
        """Give every query back but those, and say goodbye; an unreachable catalog sees it by the silence.

        A job of those may be at work for as long as its driver continues without this server.
        """
        self._over.set()
        if self._keeper.is_alive():
            self._keeper.join(timeout=10)
        try:
            with self._engine.begin() as connection:
                connection.execute(_of(self._server).where(query_leases.c.query_id.not_in(list(kept))))
                connection.execute(sa.delete(servers).where(servers.c.id == self._server))
        except sa.exc.SQLAlchemyError as error:
            _log.warning("leases could not be given back: %s", type(error).__name__)
        self._engine.dispose()

    def withdraw(self) -> None:
        """Say that a server which could not start does not live after all.

        Its leases stay as they are: drivers of its last run may be at work, and hold its queries until they
        have ended by themselves.
        """
        self._over.set()
        if self._keeper.is_alive():
            self._keeper.join(timeout=10)
        silent = sa.update(servers).where(servers.c.id == self._server).values(seen_at=_now() - self._lease)
        try:
            with self._engine.begin() as connection:
                connection.execute(silent)
        except sa.exc.SQLAlchemyError as error:
            _log.warning("the catalog could not be informed of the end: %s", type(error).__name__)
        self._engine.dispose()

    def _keep_on(self) -> None:
        while not self._over.wait(self._lease.total_seconds() / 3):
            try:
                with self._engine.begin() as connection:
                    self._show(connection)
                    self._keep(connection)
            except sa.exc.SQLAlchemyError as error:
                _log.warning("leases could not be renewed: %s; trying again", type(error).__name__)

    def _show(self, connection: sa.Connection) -> None:
        from sqlalchemy.dialects.postgresql import insert

        row = {"id": self._server, "checkpoints": self._checkpoints, "seen_at": _now()}
        statement = insert(servers).values(row)
        connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=row))
        forgotten = sa.select(servers.c.id).where(servers.c.seen_at < _now() - _FORGET)
        connection.execute(sa.delete(drivers).where(drivers.c.server.in_(forgotten)))
        connection.execute(sa.delete(servers).where(servers.c.id.in_(forgotten)))

    def _keep(self, connection: sa.Connection) -> None:
        connection.execute(
            sa.update(query_leases)
            .where(
                query_leases.c.server == self._server,
                query_leases.c.expires_at < _now() + self._held - self._lease / 3,
            )
            .values(expires_at=_now() + self._held)
        )

    def _take_new(self, connection: sa.Connection) -> None:
        from sqlalchemy.dialects.postgresql import insert

        taken = sa.select(query_leases.c.query_id)
        wanted = queries.c.id.not_in(taken) & queries.c.id.not_in(self._declining(connection))
        free = sa.select(queries.c.id, sa.literal(self._server), _now() + self._held).where(wanted)
        free = free.order_by(queries.c.id)  # in one order, for the same reason as in renew
        columns = ["query_id", "server", "expires_at"]
        connection.execute(insert(query_leases).from_select(columns, free).on_conflict_do_nothing())

    def _take_left(self, connection: sa.Connection) -> None:
        left = (
            sa.select(query_leases.c.query_id)
            .where(
                query_leases.c.server != self._server,
                query_leases.c.expires_at < _now(),
            )
            .with_for_update(skip_locked=True)
        )
        connection.execute(
            sa.update(query_leases)
            .where(query_leases.c.query_id.in_(left))
            .values(server=self._server, expires_at=_now() + self._held)
        )

    def _declining(self, connection: sa.Connection) -> list[str]:
        """What was handed over a moment ago: another server, if one lives, shall find it first."""
        if not self._declined or not self._others(connection):
            return []
        now = time.monotonic()
        self._declined = {q: at for q, at in self._declined.items() if now - at < _DECLINED_SECONDS}
        return list(self._declined)


def _of(server: str) -> sa.Delete:
    return sa.delete(query_leases).where(query_leases.c.server == server)


def _now() -> sa.Function[object]:
    return sa.func.clock_timestamp(type_=sa.DateTime(timezone=True))
