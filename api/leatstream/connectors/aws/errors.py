"""What AWS says, as a StoreError a person can act on. No credential passes through here."""

from __future__ import annotations

from typing import Any

from leatstream.errors import StoreError

_AUTH = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
        "UnauthorizedOperation",
        "KMSAccessDeniedException",
    }
)
THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ReadProvisionedThroughputExceeded",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "SlowDown",
        "TooManyRequestsException",
        "KMSThrottlingException",
    }
)
_AWAY = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalFailureException",
        "RequestTimeout",
        "ServiceUnavailable",
    }
)
_CLOCK = frozenset({"RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"})
_KEYS_HINT = (
    "Check access_key_id and secret_access_key, or the machine's own credentials when none are given."
)
_ROLE_HINT = "Check that the policy allows it, and role_arn and external_id if there are any."
_CLOCK_HINT = "Set this machine's clock, best by NTP: AWS takes no request that is signed minutes off."
_OFF_HINT = "Enable the region in the AWS account, or name another one in region."
# AWS refuses unknown keys and a region that the account has not enabled with the same codes.
_UNKNOWN = frozenset({"InvalidClientTokenId", "UnrecognizedClientException"})
_UNKNOWN_HINT = (
    "Check access_key_id and secret_access_key, and that the account has the store's region enabled."
)
_REGION_HINT = "Check region and endpoint_url: they must be of the same region."


def code_of(error: Exception) -> str:
    """AWS's code of an error, or the name of the library's exception."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response.get("Error", {}).get("Code") or "")
    return type(error).__name__


def is_throttled(error: Exception) -> bool:
    """Whether waiting helps: the shard or the account is asked more than it may be, or AWS is away."""
    return code_of(error) in THROTTLED | _AWAY or _is_connection(error)


def store_error(
    store: str, what: str, error: Exception, where: str, timeout: float, service: str = "Kinesis"
) -> StoreError:
    """What to say when a call failed.

    Args:
        store: the store's name.
        what: what was tried, such as ``listing streams``.
        error: from botocore.
        where: address or region.
        timeout: seconds that the call had.
        service: AWS's name of what was asked.
    """
    code, said = code_of(error), said_of(error)
    if code in ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"):
        return StoreError(
            "store-auth-failed",
            f"Store {store}: there are no AWS credentials for {what}.",
            hint="Give access_key_id and secret_access_key, or credentials to the machine itself; "
            "drivers get those in variables only if LEATSTREAM_DRIVER_ENVIRONMENT names them (AWS_*).",
        )
    if code in _AUTH or status_of(error) in (401, 403):
        why, hint = _refusal(code, said)
        return StoreError("store-auth-failed", f"Store {store}: AWS refused {what}{why} ({code}).", hint=hint)
    if _is_connection(error):
        return StoreError(
            "store-unreachable",
            f"Store {store}: {service} did not answer at {where} within {timeout:g} s ({code}).",
            hint="Check the region and the address (endpoint_url; SQL: 'uris'), and that it can be reached.",
        )
    if code in THROTTLED | _AWAY:
        return StoreError(
            "store-unreachable",
            f"Store {store}: {service} puts off {what} ({code}).",
            hint="It is asked too often, or has a disturbance; try again.",
        )
    if code == "ResourceNotFoundException":
        return StoreError(
            "entity-not-found",
            f"Store {store}: {what}: there is no such stream at {where}.",
            hint="Check the stream's name, and that it is in the store's region.",
        )
    return StoreError("store-rejected", f"Store {store}: {what} was refused: {said.rstrip('.')} ({code}).")


def _refusal(code: str, said: str) -> tuple[str, str]:
    """Why AWS refused a request, as far as it says, and what to do."""
    plain = said.lower()
    # "Signature expired: … is now earlier than …", "Signature not yet current: … is still later than …"
    if code in _CLOCK or ("signature" in plain and ("expired" in plain or "not yet current" in plain)):
        return ": the clock of this machine and that of AWS differ too much", _CLOCK_HINT
    # "Credential should be scoped to a valid region, not 'us-east-1'."
    if "scoped to" in plain and "region" in plain:
        return ": the request is signed for another region than the one it went to", _REGION_HINT
    if code == "OptInRequired":
        return ": the account has not enabled this region or service", _OFF_HINT
    if code in _UNKNOWN:
        return "", _UNKNOWN_HINT
    return "", _ROLE_HINT if "Denied" in code else _KEYS_HINT


def status_of(error: Exception) -> int:
    """The HTTP status of an answer; 0 where there was none."""
    response: Any = getattr(error, "response", None)
    meta = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    return int(meta.get("HTTPStatusCode") or 0)


def _is_connection(error: Exception) -> bool:
    from botocore.exceptions import ConnectionError as NoConnection
    from botocore.exceptions import HTTPClientError

    return isinstance(error, NoConnection | HTTPClientError)


def said_of(error: Exception) -> str:
    """What AWS says, without the request that it quotes."""
    response: Any = getattr(error, "response", None)
    text = response.get("Error", {}).get("Message") if isinstance(response, dict) else str(error)
    # A refused signature quotes the request that was signed; its first line says enough.
    return " ".join(str(text or "").split("\n\n")[0].split())[:300]
