"""Informs the other servers of a PostgreSQL catalog of changes (LISTEN and NOTIFY)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import psycopg
import sqlalchemy as sa

from leatstream.views.postgresql_line import line_options

_log = logging.getLogger(__name__)
_CHANNEL = "leatstream_changed"
_LISTEN_SECONDS = 1.0


class Announcements:
    """Two threads: one says what happens here, one hears what happens at others.

    Nothing depends on a word that gets lost: every server also looks by itself once a second.

    Args:
        url: of the catalog.
        server: this server's id; its own words are not heard.
        heard: called when another server has changed something, or may have while the line was down.
    """

    def __init__(self, url: str, server: str, heard: Callable[[], None]) -> None:
        self._address = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._line = line_options(sa.make_url(url).query)
        self._server = server
        self._heard = heard
        self._changed = threading.Event()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._forever, args=(work,), name=name, daemon=True)
            for work, name in ((self._listen, "announcements-in"), (self._speak, "announcements-out"))
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def tell(self) -> None:
        """Something has changed here; returns at once. Words in quick succession become one."""
        self._changed.set()

    def close(self) -> None:
        """End both threads."""
        self._over.set()
        self._changed.set()
        for thread in self._threads:
            thread.join(timeout=10)

    def _forever(self, work: Callable[[psycopg.Connection], None]) -> None:
        while not self._over.is_set():
            try:
                with psycopg.connect(self._address, autocommit=True, **self._line) as connection:
                    work(connection)
            except psycopg.Error as error:
                _log.warning("no word to or from the other servers: %s; trying again", type(error).__name__)
                self._over.wait(_LISTEN_SECONDS)

    def _listen(self, connection: psycopg.Connection) -> None:
        connection.execute(f"LISTEN {_CHANNEL}")
        self._heard()
        while not self._over.is_set():
            for notice in connection.notifies(timeout=_LISTEN_SECONDS, stop_after=1):
                if notice.payload != self._server:
                    self._heard()

    def _speak(self, connection: psycopg.Connection) -> None:
        while True:
            self._changed.wait()
            if self._over.is_set():
                return
            self._changed.clear()
            try:
                connection.execute("SELECT pg_notify(%s, %s)", (_CHANNEL, self._server))
            except psycopg.Error:
                self._changed.set()  # it is said over the next connection
                raise
