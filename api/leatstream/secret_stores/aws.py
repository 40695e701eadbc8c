"""AWS Secrets Manager, with the credentials of the server's machine."""

from __future__ import annotations

import logging
import threading
from typing import Any

from leatstream.connectors.aws.access import aws_client
from leatstream.connectors.aws.errors import code_of, store_error
from leatstream.errors import SecretStoreError
from leatstream.model.outside_secrets import OutsideReference
from leatstream.secret_stores.settings import AwsSecretsManager, permits
from leatstream.secret_stores.values import SECONDS, decoded, member, missing, refused, unreachable

_GONE = ("ResourceNotFoundException", "InvalidRequestException")  # the latter: it is marked for deletion


class AwsSecrets:
    """Values of AWS Secrets Manager (``ports.SecretProvider``)."""

    def __init__(self, settings: AwsSecretsManager) -> None:
        """Call nothing yet."""
        # Its debug lines quote answers.
        logging.getLogger("botocore.parsers").setLevel(logging.INFO)
        self._settings = settings
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def permits(self, reference: OutsideReference) -> str | None:
        """None if the name or ARN, and the region, are permitted."""
        if not permits(self._settings.allow, reference.path):
            allowed = ", ".join(self._settings.allow)
            return f"The secret {reference.path} of AWS is not permitted, only {allowed}."
        region = self._region(reference)
        if region not in self._settings.regions:
            return f"The region {region} is not permitted, only {', '.join(self._settings.regions)}."
        return None

    def read(self, reference: OutsideReference) -> str:
        """The present version's text, or a member of the JSON object that it is."""
        region = self._region(reference)
        where = f"Secret {reference.path} in {region}"
        try:
            found = self._client(region).get_secret_value(SecretId=reference.path)
        except Exception as error:
            raise _as_error(error, where, region) from None
        text = found.get("SecretString")
        if text is None:
            text = decoded(found.get("SecretBinary") or b"", where)
        return member(text, reference.key, where)

    def _region(self, reference: OutsideReference) -> str:
        if reference.path.startswith("arn:"):
            return (reference.path.split(":") + [""] * 4)[3]
        return reference.region or self._settings.regions[0]

    def _client(self, region: str) -> Any:
        with self._lock:
            if region not in self._clients:
                access = self._settings.access(region)
                self._clients[region] = aws_client("secretsmanager", access, SECONDS)
            return self._clients[region]


def _as_error(error: Exception, where: str, region: str) -> SecretStoreError:
    code = code_of(error)
    if code in _GONE:
        return missing(f"{where} does not exist, or is marked for deletion ({code})")
    if code == "InternalServiceError":
        return unreachable(f"AWS Secrets Manager in {region} has an internal error ({code})")
    found = store_error("", "", error, region, SECONDS, "Secrets Manager")
    if found.code == "store-unreachable":
        return unreachable(f"AWS Secrets Manager does not answer in {region} ({code})")
    hint = "Allow the server's identity secretsmanager:GetSecretValue, and kms:Decrypt for your own key."
    return refused(f"AWS refused the server {where} ({code})", hint)
