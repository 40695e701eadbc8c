"""What S3 says, as a StoreError a person can act on. No credential passes through here."""

from __future__ import annotations

import re
from typing import Any

from leatstream.connectors.aws.errors import code_of, status_of, store_error
from leatstream.connectors.s3.settings import S3Config
from leatstream.errors import StoreError

_ELSEWHERE = frozenset(
    {
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "PermanentRedirect",
        "TemporaryRedirect",
    }
)
_GONE = frozenset({"404", "NoSuchKey", "NotFound"})
_CHANGED = frozenset({"412", "PreconditionFailed"})


def is_gone(error: Exception) -> bool:
    """Whether the object is not there."""
    return code_of(error) in _GONE


def is_changed(error: Exception) -> bool:
    """Whether the object is another one than the one asked for."""
    return code_of(error) in _CHANGED


def s3_error(store: str, what: str, error: Exception, config: S3Config, timeout: float) -> StoreError:
    """What to say when a call failed.

    Args:
        store: the store's name.
        what: what was tried, such as ``listing files``.
        error: from botocore.
        config: of the store.
        timeout: seconds that the call had.
    """
    code = code_of(error)
    if code == "NoSuchBucket":
        return StoreError(
            "store-rejected",
            f"Store {store}: there is no bucket {config.bucket} at {config.where}.",
            hint="Check bucket and endpoint_url; leatstream makes no buckets.",
        )
    if code in _ELSEWHERE or status_of(error) == 301:
        return StoreError(
            "store-rejected",
            f"Store {store}: bucket {config.bucket} is not in {config.region}{_place(error)} ({code}).",
            hint="Give the region that the bucket is in.",
        )
    # A web server that knows nothing of S3 answers with a page or a bare status.
    if code in ("ResponseParserError", "400", "404", "405", "500", "501"):
        return StoreError(
            "store-unreachable",
            f"Store {store}: what answers at {config.where} is not S3.",
            hint="Check endpoint_url.",
        )
    return store_error(store, what, error, config.where, timeout, "S3")


def _place(error: Exception) -> str:
    """Where S3 says that the bucket is, if it does."""
    response: Any = getattr(error, "response", None)
    answer = response if isinstance(response, dict) else {}
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = headers.get("x-amz-bucket-region") or answer.get("Error", {}).get("Region")
    return f" but in {region}" if re.match(r"[a-z]{2}(-[a-z]+)+-\d{1,2}\Z", str(region or "")) else ""
