"""What a workspace and a table's files say, as StoreErrors. No value of a row passes through here."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from leatstream.errors import StoreError
from leatstream.model.extras import install_extra

_REFUSED = re.compile(
    r"AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|403 Forbidden|401 Unauthorized"
)
_NO_BUCKET = re.compile(r"NoSuchBucket|404 Not Found|does not exist", re.I)
_AGAIN = "TemporarilyUnavailable", "TooManyRequests", "DeadlineExceeded", "InternalError", "OperationTimeout"
_CONDITION = re.compile(r"\s*\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)?)\]")
_GRANTS = "INSUFFICIENT_PERMISSIONS", "PERMISSION_DENIED", "UNAUTHORIZED_ACCESS"
_CONFLICTS = "DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED"
_NO_FILE = "PATH_NOT_FOUND", "FAILED_READ_FILE", "FILE_NOT_EXIST", "COPY_INTO_SOURCE_FILE"
_ROWS = "NOT_NULL", "CONSTRAINT", "CAST_", "NUMERIC_VALUE", "ARITHMETIC", "EXCEED_CHAR", "DATETIME_OVERFLOW"
_MISSING = (
    "Stores of kind databricks need the Python packages databricks-sdk and deltalake, "
    "which are not installed."
)


class LostStatementError(StoreError):
    """The answer to a statement was lost: it may have run, may run still, or may never run."""

    def __init__(self, store: str, what: str) -> None:
        super().__init__(
            "store-unreachable",
            f"Store {store}: the connection broke while {what}; what became of it is unknown.",
            hint="It is settled at the next attempt.",
        )


class RefusedStatementError(StoreError):
    """The warehouse did not run a statement.

    Attributes:
        condition: the error's name, such as ``TABLE_OR_VIEW_NOT_FOUND``; empty where it has none.
    """

    def __init__(self, code: str, detail: str, hint: str | None, condition: str) -> None:
        super().__init__(code, detail, hint=hint)
        self.condition = condition

    @property
    def is_conflict(self) -> bool:
        """Whether another writer was first, so that the statement wrote nothing and may be repeated."""
        return self.condition.startswith(_CONFLICTS)

    @property
    def lacks_file(self) -> bool:
        """Whether a staged file was not there any more."""
        return self.condition.startswith(_NO_FILE)


def refused_statement(store: str, what: str, said: str, *, rows: bool) -> RefusedStatementError:
    """What a warehouse says about a statement that failed.

    Args:
        store: the store's name.
        what: what was tried, such as ``writing to table orders``.
        said: the warehouse's message.
        rows: whether it may quote values of rows, so that only its condition is passed on.
    """
    found = _CONDITION.match(said)
    condition = found[1] if found is not None else ""
    head = f"Store {store}: {what}"
    if condition.startswith(_GRANTS):
        hint = "Check the grants of the login in the catalog, and on the volume."
        return RefusedStatementError("store-auth-failed", f"{head} is not allowed.", hint, condition)
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND") and rows:
        return RefusedStatementError("store-rejected", f"{head} was refused: it is gone.", None, condition)
    if rows and any(word in condition for word in _ROWS):
        detail = f"{head} was refused: a value does not fit its column, or breaks a constraint ({condition})."
        hint = "Look for NULL in NOT NULL columns and for CHECKs."
        return RefusedStatementError("store-rejected", detail, hint, condition)
    line = condition if rows else (said.strip().splitlines() or [""])[0][:200].rstrip(".")
    return RefusedStatementError(
        "store-rejected", f"{head} was refused: {line or 'no reason'}.", None, condition
    )


def missing_library() -> StoreError:
    """A client library is not installed."""
    return StoreError("store-rejected", _MISSING, hint=install_extra("databricks"))


@contextlib.contextmanager
def workspace_errors(store: str, host: str, what: str, timeout: float) -> Iterator[None]:
    """Errors of the workspace's REST API as StoreErrors.

    Args:
        store: the store's name.
        host: the workspace's address.
        what: what is tried, such as ``listing tables``.
        timeout: seconds that it has.
    """
    try:
        import requests
        from databricks.sdk import errors
        from databricks.sdk.errors.base import DatabricksError
    except ImportError:
        raise missing_library() from None

    try:
        yield
    except (errors.Unauthenticated, errors.PermissionDenied) as error:
        raise StoreError(
            "store-auth-failed",
            f"Store {store}: the workspace at {host} refuses this: {what} ({_code(error)}).",
            hint="Check the token or service principal: its term, and its grants in the catalog.",
        ) from None
    except errors.NotFound as error:
        raise StoreError("entity-not-found", f"Store {store}: {what}: {_said(error)}.") from None
    except DatabricksError as error:
        if type(error).__name__ in _AGAIN:
            raise _unreachable(store, host, what, timeout) from None
        raise StoreError("store-rejected", f"Store {store}: {what} was refused: {_said(error)}.") from None
    except (requests.RequestException, TimeoutError, OSError):
        raise _unreachable(store, host, what, timeout) from None
    except ValueError:
        # The client's own checks of its settings; its sentence may quote them.
        raise StoreError(
            "store-auth-failed",
            f"Store {store}: the client of the workspace at {host} has no usable credentials.",
            hint="Give a token, or client_id and client_secret.",
        ) from None


def _unreachable(store: str, host: str, what: str, timeout: float) -> StoreError:
    return StoreError(
        "store-unreachable",
        f"Store {store}: the workspace at {host} did not finish {what} within {timeout:g} s.",
        hint="Check the address and the warehouse: one that is starting takes minutes.",
    )


def _code(error: Any) -> str:
    return str(getattr(error, "error_code", None) or type(error).__name__)


def _said(error: Any) -> str:
    return (next(iter(str(error).splitlines()), "") or _code(error))[:200].rstrip(".")


@contextlib.contextmanager
def file_errors(store: str, entity: str) -> Iterator[None]:
    """Errors of delta-rs as StoreErrors; its sentences may hold values, and are not passed on.

    Args:
        store: the store's name.
        entity: the table.
    """
    try:
        from deltalake import exceptions
    except ImportError:
        raise missing_library() from None

    head = f"Store {store}: table {entity}"
    try:
        yield
    except exceptions.TableNotFoundError:
        raise StoreError("store-rejected", f"{head} has no Delta log at its location.") from None
    except exceptions.CommitFailedError:
        raise StoreError(
            "store-unreachable",
            f"{head} was changed by another writer at the same time.",
            hint="It is tried again.",
        ) from None
    except exceptions.DeltaProtocolError:
        raise StoreError(
            "store-rejected",
            f"{head} has a feature of Delta Lake that this client does not write.",
            hint="Switch deletion vectors, column mapping and row tracking off, or use a new table.",
        ) from None
    except exceptions.SchemaMismatchError:
        raise StoreError("store-rejected", f"{head} has other columns than the query.") from None
    except (exceptions.DeltaError, OSError) as error:
        raise _file_error(head, str(error)) from None


def _file_error(head: str, text: str) -> StoreError:
    if _REFUSED.search(text):
        detail = f"{head}: the bucket refuses the credentials."
        return StoreError("store-auth-failed", detail, hint="Check the key or role of 's3' and its policy.")
    if "Generic S3 error" in text or "Error performing" in text:
        if _NO_BUCKET.search(text):
            detail = f"{head}: its bucket does not exist."
            return StoreError("store-rejected", detail, hint="Check the bucket and its region.")
        detail = f"{head}: its bucket does not answer."
        return StoreError("store-unreachable", detail, hint="Check region and endpoint_url of 's3'.")
    detail = f"{head} does not take a row: a value does not fit its column, or breaks a constraint."
    return StoreError("store-rejected", detail, hint="Look for NULL in NOT NULL columns and for CHECKs.")
