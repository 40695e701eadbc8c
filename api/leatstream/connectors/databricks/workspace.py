"""The workspace: Unity Catalog by its REST API, statements by the Statement Execution API."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from leatstream.connectors.databricks.errors import workspace_errors
from leatstream.connectors.databricks.settings import DatabricksConfig
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from databricks.sdk import WorkspaceClient

_POLL = 1.0  # seconds


class Workspace:
    """One workspace; a client for each call, with its own deadline."""

    def __init__(self, store: str, config: DatabricksConfig) -> None:
        self.store = store
        self.config = config

    def errors(self, what: str, timeout: float) -> AbstractContextManager[None]:
        """The workspace's errors as StoreErrors."""
        return workspace_errors(self.store, self.config.host, what, timeout)

    def client(self, timeout: float) -> WorkspaceClient:
        """A client that gives up after so many seconds; call it within ``errors``."""
        from databricks.sdk import WorkspaceClient
        from databricks.sdk.core import Config

        config = self.config
        login: dict[str, Any] = {"auth_type": "pat", "token": _secret(config.token)}
        if config.client_id is not None:
            secret = _secret(config.client_secret)
            login = {"auth_type": "oauth-m2m", "client_id": config.client_id, "client_secret": secret}
        if None in login.values():
            raise ValueError("no credentials")
        # Its own bound is five minutes, also for an address where nothing listens.
        seconds = max(1, int(timeout))
        return WorkspaceClient(
            config=Config(
                host=config.host, retry_timeout_seconds=seconds, http_timeout_seconds=seconds, **login
            )
        )

    def warehouse(self, timeout: float) -> dict[str, str]:
        """Log in, and look at the warehouse without starting it."""
        try:
            with self.errors("looking at the warehouse", timeout):
                found = self.client(timeout).warehouses.get(self.config.warehouse_id)
        except StoreError as error:
            if error.code != "entity-not-found":
                raise
            detail = f"Store {self.store}: the workspace has no SQL warehouse {self.config.warehouse_id}."
            raise StoreError("store-rejected", detail, hint="Check warehouse_id.") from None
        return {
            "warehouse": str(found.name),
            "warehouse_state": str(found.state.value if found.state else "?"),
        }

    def execute(self, statement: str, what: str, timeout: float) -> None:
        """Run a statement, and wait until it is complete.

        Args:
            statement: without values of rows.
            what: what is tried, for messages.
            timeout: seconds; then it is cancelled.

        Raises:
            StoreError: what the warehouse says, or store-unreachable after the deadline.
        """
        from databricks.sdk.service.sql import ExecuteStatementRequestOnWaitTimeout, StatementState

        running = (StatementState.PENDING, StatementState.RUNNING)
        end = time.monotonic() + timeout
        with self.errors(what, timeout):
            api = self.client(timeout).statement_execution
            answer = api.execute_statement(
                statement=statement,
                warehouse_id=self.config.warehouse_id,
                wait_timeout=f"{max(5, min(50, int(timeout)))}s",
                on_wait_timeout=ExecuteStatementRequestOnWaitTimeout.CONTINUE,
            )
            while answer.status is not None and answer.status.state in running:
                if time.monotonic() > end:
                    api.cancel_execution(str(answer.statement_id))
                    raise TimeoutError
                time.sleep(_POLL)
                answer = api.get_statement(str(answer.statement_id))
        status = answer.status
        if status is None or status.state is not StatementState.SUCCEEDED:
            said = status.error.message if status and status.error and status.error.message else "no reason"
            line = said.splitlines()[0][:200].rstrip(".")
            raise StoreError("store-rejected", f"Store {self.store}: {what} was refused: {line}.")


def _secret(value: Any) -> str | None:
    found: str | None = value.get_secret_value() if value is not None else None
    return found
