"""A ClickHouse for the embedded stack: the engine of chdb behind ClickHouse's HTTP interface."""

from __future__ import annotations

import os
from pathlib import Path

from leatstream.dev.local_server import LocalServer

USER = "leat"
#: It listens on this machine alone, as Kafka does, which asks for none; the client library wants one.
PASSWORD = "local"  # noqa: S105
DATABASE = "local"


class LocalClickHouse(LocalServer):
    """One server over a directory; its data are there at the next start."""

    name = "ClickHouse"
    extra = "dev-clickhouse"
    needs = ("chdb", "clickhouse_connect", "lz4")
    module = "leatstream.dev.clickhouse_http"

    def __init__(
        self, log_file: Path, directory: Path, *, user: str = USER, password: str = PASSWORD
    ) -> None:
        """Describe it.

        Args:
            log_file: takes what it prints.
            directory: holds its data.
            user: its only one.
            password: of the user.
        """
        login = {"LEAT_CLICKHOUSE_LOGIN": f"{user}:{password}"}
        super().__init__(log_file, directory, env={**os.environ, **login})
