"""PostgreSQL's sink in the suite of all table stores; its own cases are in jobs/test_postgres_sink.py."""

from __future__ import annotations

import pytest
from postgres_server import PASSWORD, PostgresServer
from sink_suite import TableSinkSuite
from table_run import Row, TableServer

pytestmark = pytest.mark.spark


class TestPostgres(TableSinkSuite):
    @pytest.fixture
    def server(self, postgres: PostgresServer) -> TableServer:
        def rows(entity: str) -> list[Row]:
            with postgres.connect() as connection:
                return connection.execute(f"SELECT * FROM {entity} ORDER BY 1").fetchall()

        return TableServer("postgres", postgres.config(), {"password": PASSWORD}, rows)
