"""What a catalog or its object store says, as a StoreError a person can act on.

pyiceberg's own sentences may hold values of rows. Of those that are about rows nothing is passed on, and of
the others the first line.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from leatstream.connectors.aws import errors as aws
from leatstream.errors import StoreError
from leatstream.model.extras import install_extra

_LOGIN_HINT = "Check client_id, client_secret and scope, or the token."
_REACH_HINT = "Check the address ('uris' in SQL), and that it can be reached from here."
_AUTH = ("OAuthError", "UnauthorizedError", "ForbiddenError", "AuthorizationExpiredError")
_GONE = ("NoSuchTableError", "NoSuchNamespaceError", "NoSuchIcebergTableError", "NoSuchIdentifierError")
_BUSY = (
    "CommitFailedException",
    "CommitStateUnknownException",
    "ServiceUnavailableError",
    "ServerError",
    "TooManyRequestsError",
)
_LONGEST = 300
# Nessie's answer is a server error, which would be tried again for ever.
_NO_WAREHOUSE = re.compile(r"Warehouse .* is not known")
# Of a proxy or load balancer, which knows nothing of the protocol: its page is of no use.
_NOT_OF_A_CATALOG = re.compile(r"RESTError (\d{3}): (?:Received unexpected|Could not decode)")


@contextlib.contextmanager
def reported(store: str, what: str, where: str, timeout: float, *, rows: bool = False) -> Iterator[None]:
    """What pyiceberg, its clients and pyarrow raise, as StoreErrors.

    Args:
        store: the store's name.
        what: what was tried, such as ``listing tables``.
        where: the catalog's place.
        timeout: seconds that a request had.
        rows: whether rows were read or written: then no sentence is passed on that may hold a value.
    """
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        found = store_error(store, what, error, where, timeout, rows=rows)
        if found is None:
            raise
        raise found from None


def store_error(
    store: str, what: str, error: Exception, where: str, timeout: float, *, rows: bool = False
) -> StoreError | None:
    """The StoreError for what was raised; None for what is no fault of the store.

    Args:
        store: the store's name.
        what: what was tried.
        error: what was raised.
        where: the catalog's place.
        timeout: seconds that a request had.
        rows: see ``reported``.
    """
    name = type(error).__name__
    module = type(error).__module__.partition(".")[0]
    if module in ("botocore", "boto3"):
        if aws.code_of(error) == "EntityNotFoundException":
            return StoreError("entity-not-found", f"Store {store}: {what}: it does not exist.")
        return aws.store_error(store, what, error, where, timeout, "AWS Glue")
    if module in ("requests", "urllib3"):
        return _unreachable(store, error, where, timeout)
    if module == "pyiceberg":
        return _of_iceberg(store, what, name, error)
    if isinstance(error, OSError):
        return _of_files(store, what, error)
    if module == "pyarrow" or isinstance(error, ValueError | TypeError | NotImplementedError | KeyError):
        said = "" if rows else f": {_first(error)}"
        return StoreError("store-rejected", f"Store {store}: {what} failed{said} ({name}).")
    return None


def _of_iceberg(store: str, what: str, name: str, error: Exception) -> StoreError:
    if name in _AUTH:
        detail = f"Store {store}: the catalog refused {what}: {_first(error)} ({name})."
        return StoreError("store-auth-failed", detail, hint=_LOGIN_HINT)
    if name in _GONE:
        return StoreError("entity-not-found", f"Store {store}: {what}: it does not exist.")
    if _NO_WAREHOUSE.search(str(error)):
        detail = f"Store {store}: the catalog refused {what}: {_first(error)} ({name})."
        return StoreError("store-rejected", detail, hint="Check the warehouse ('iceberg.catalog.id' in SQL).")
    if name in _BUSY:
        detail = f"Store {store}: the catalog failed at {what}: {_first(error)} ({name})."
        return StoreError(
            "store-unreachable", detail, hint="Others write there, or it is disturbed; try again."
        )
    if name == "NotInstalledError":
        detail = f"Store {store}: {what} needs a library that is not installed here."
        return StoreError("store-rejected", detail, hint=install_extra("iceberg"))
    return StoreError("store-rejected", f"Store {store}: {what} was refused: {_first(error)} ({name}).")


def _unreachable(store: str, error: Exception, where: str, timeout: float) -> StoreError:
    name = type(error).__name__
    if "SSL" in name:
        detail = f"Store {store}: the catalog at {where} has no certificate that is trusted ({name})."
        return StoreError(
            "store-unreachable", detail, hint="Check ca_certificate, and the name in the address."
        )
    detail = f"Store {store}: the catalog did not answer at {where} within {timeout:g} s ({name})."
    return StoreError("store-unreachable", detail, hint=_REACH_HINT)


def _of_files(store: str, what: str, error: OSError) -> StoreError:
    """pyarrow's file systems say all in one sentence, with the address and AWS's word in it."""
    said = str(error)
    if (
        "ACCESS_DENIED" in said
        or "INVALID_ACCESS_KEY" in said
        or "SIGNATURE" in said
        or "HTTP status 403" in said
    ):
        return StoreError(
            "store-auth-failed",
            f"Store {store}: the object store refused {what}.",
            hint="Check the keys for the files ('iceberg.s3.access_key_id'), and what the catalog hands out.",
        )
    if isinstance(error, FileNotFoundError) or "NO_SUCH_BUCKET" in said or "NO_SUCH_KEY" in said:
        return StoreError(
            "store-rejected",
            f"Store {store}: {what}: a file or a bucket of the table is missing.",
            hint="See whether somebody deleted files of the table, and where its location lies.",
        )
    return StoreError(
        "store-unreachable",
        f"Store {store}: the object store did not finish {what} ({type(error).__name__}).",
        hint="Check the address of the object store, its region, and that it can be reached from here.",
    )


def _first(error: Exception) -> str:
    if found := _NOT_OF_A_CATALOG.match(str(error)):
        return f"HTTP status {found[1]}"
    lines = str(error).strip().splitlines()
    return lines[0][:_LONGEST].rstrip(".") if lines else type(error).__name__
