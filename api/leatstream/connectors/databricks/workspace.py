"""The workspace: its client, with deadlines and errors of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leatstream.connectors.databricks.errors import workspace_errors
from leatstream.connectors.databricks.settings import DatabricksConfig
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from databricks.sdk import WorkspaceClient

_ONCE = 1  # second: the client's first pause is longer, so that there is no second try


class Workspace:
    """One workspace; a client for each call, with its own deadline."""

    def __init__(self, store: str, config: DatabricksConfig) -> None:
        self.store = store
        self.config = config

    def errors(self, what: str, timeout: float) -> AbstractContextManager[None]:
        """The workspace's errors as StoreErrors."""
        return workspace_errors(self.store, self.config.host, what, timeout)

    def client(self, timeout: float, *, once: bool = False) -> WorkspaceClient:
        """A client that gives up after so many seconds; call it within ``errors``.

        Args:
            timeout: seconds.
            once: whether it sends a request a single time, for what may not be done twice.
        """
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
                host=config.host,
                retry_timeout_seconds=_ONCE if once else seconds,
                http_timeout_seconds=seconds,
                **login,
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


def _secret(value: Any) -> str | None:
    found: str | None = value.get_secret_value() if value is not None else None
    return found
