"""Statements on a SQL warehouse, by the Statement Execution API.

A warehouse that is stopped starts at the first statement, which is pending until then. Each statement is
sent once: the answer with its id may be lost, and a second one would run besides it. With the id its state is
asked for, as often as it takes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from leatstream.connectors.databricks.errors import LostStatementError, refused_statement
from leatstream.connectors.databricks.workspace import Workspace

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.service.sql import StatementResponse

Rows = list[list[Any]]
_POLLS = (0.1, 2.0)  # seconds: the first pause, and the longest
_SEND, _ASK = 60.0, 60.0  # seconds
_BUSY = 2.0  # seconds, after a 429


class Warehouse:
    """The warehouse of a store."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._clients: dict[bool, WorkspaceClient] = {}

    def run(self, statement: str, what: str, timeout: float, *, rows: bool = False) -> Rows:
        """Run a statement, and wait until it is complete; its rows, whose values are texts or None.

        Args:
            statement: its text.
            what: what is tried, for messages, such as ``creating table orders``.
            timeout: seconds, also for the start of the warehouse; then it is cancelled.
            rows: whether it handles rows, whose values may be no part of a message.

        Raises:
            LostStatementError: whether it has run is unknown.
            RefusedStatementError: it has not.
            StoreError: store-unreachable after the deadline.
        """
        from databricks.sdk.service.sql import StatementState

        store, end = self.workspace.store, time.monotonic() + timeout
        with self.workspace.errors(what, timeout):
            answer = self._outcome(self._send(statement, what, end), what, end)
            status = answer.status
            # CLOSED: it succeeded, and its rows are gone.
            if status is not None and status.state in (StatementState.SUCCEEDED, StatementState.CLOSED):
                return self._rows(answer)
        said = status.error.message if status and status.error and status.error.message else ""
        if status is not None and status.state is StatementState.CANCELED:
            said = "it was cancelled"
        raise refused_statement(store, what, said, rows=rows)

    def _client(self, *, once: bool) -> WorkspaceClient:
        if once not in self._clients:
            self._clients[once] = self.workspace.client(_SEND if once else _ASK, once=once)
        return self._clients[once]

    def _send(self, statement: str, what: str, end: float) -> StatementResponse:
        import requests
        from databricks.sdk import errors
        from databricks.sdk.service.sql import ExecuteStatementRequestOnWaitTimeout

        while True:
            try:
                return self._client(once=True).statement_execution.execute_statement(
                    statement=statement,
                    warehouse_id=self.workspace.config.warehouse_id,
                    wait_timeout="0s",
                    on_wait_timeout=ExecuteStatementRequestOnWaitTimeout.CONTINUE,
                )
            except (TimeoutError, errors.TooManyRequests) as error:
                # The client reports a request that it would have repeated as a TimeoutError.
                cause = error.__cause__ if isinstance(error, TimeoutError) else error
                if not isinstance(cause, errors.TooManyRequests) or time.monotonic() + _BUSY > end:
                    raise LostStatementError(self.workspace.store, what) from None
                time.sleep(_BUSY)
            except (requests.RequestException, errors.InternalError, errors.TemporarilyUnavailable):
                raise LostStatementError(self.workspace.store, what) from None

    def _outcome(self, answer: StatementResponse, what: str, end: float) -> StatementResponse:
        import requests
        from databricks.sdk import errors
        from databricks.sdk.service.sql import StatementState

        pause, number = _POLLS[0], str(answer.statement_id)
        api = self._client(once=False).statement_execution
        while answer.status is None or answer.status.state in (
            StatementState.PENDING,
            StatementState.RUNNING,
        ):
            if time.monotonic() > end:
                api.cancel_execution(number)
                raise TimeoutError
            time.sleep(pause)
            pause = min(_POLLS[1], pause * 1.5)
            try:
                answer = api.get_statement(number)
            except (errors.NotFound, requests.RequestException, TimeoutError):
                raise LostStatementError(self.workspace.store, what) from None
        return answer

    def _rows(self, answer: StatementResponse) -> Rows:
        found: Rows = list((answer.result.data_array if answer.result else None) or [])
        chunks = (answer.manifest.total_chunk_count if answer.manifest else None) or 1
        api = self._client(once=False).statement_execution
        for number in range(1, chunks):
            found += api.get_statement_result_chunk_n(str(answer.statement_id), number).data_array or []
        return found
