"""What a workspace and a table's files say, as StoreErrors. No value of a row passes through here."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from leatstream.errors import StoreError

_REFUSED = re.compile(
    r"AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|403 Forbidden|401 Unauthorized"
)
_NO_BUCKET = re.compile(r"NoSuchBucket|404 Not Found|does not exist", re.I)
_AGAIN = "TemporarilyUnavailable", "TooManyRequests", "DeadlineExceeded", "InternalError", "OperationTimeout"
_MISSING = (
    "Stores of kind databricks need the Python packages databricks-sdk and deltalake, "
    "which are not installed."
)


def missing_library() -> StoreError:
    """A client library is not installed."""
    return StoreError("store-rejected", _MISSING, hint="pip install 'leatstream[databricks]'")


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
            hint="Check the token or service principal, and its grants in the catalog.",
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
