"""How to reach a service of AWS: the settings that its store kinds share, and the client they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.settings import Api, Connects, Generated, Needs, Secret, StoreSettings

REGION = r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}"
_ROLE = r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+"
_EXTERNAL = r"[A-Za-z0-9_+=,.@:/-]+"
_URL = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?/?\Z")


class AwsIdentity(StoreSettings):
    """Region and credentials.

    Without an access key the machine's own credentials are used: environment, profile, container or instance.
    """

    region: Annotated[str, Api(min_length=1, max_length=40, pattern=f"^{REGION}$")] = Field(
        description="AWS region.", examples=["eu-west-1"]
    )
    access_key_id: Annotated[
        str | None,
        Needs("secret_access_key"),
        Api(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_]+$"),
    ] = Field(None, description="Access key; without one the server's own AWS credentials are used.")
    role_arn: Annotated[
        str | None,
        Api(max_length=2048, pattern=f"^{_ROLE}$"),
    ] = Field(None, description="Role to assume with these credentials.")
    external_id: Annotated[
        str | None,
        Needs("role_arn"),
        Generated(),
        Api(min_length=2, max_length=1224, pattern=f"^{_EXTERNAL}$"),
    ] = Field(
        None,
        description="External id that the role requires; without an access key the server generates it.",
    )
    secret_access_key: Annotated[
        SecretStr | None,
        Needs("access_key_id"),
        Secret("the secret of the access key", of="access_key_id"),
        Api(min_length=1, max_length=1000, pattern=r"^[!-~]+$"),
    ] = Field(None, description="Secret of the access key")

    @field_validator("region")
    @classmethod
    def _is_region(cls, value: str) -> str:
        if not re.fullmatch(REGION, value):
            raise PydanticCustomError("region", "write a region such as eu-west-1")
        return value

    @field_validator("access_key_id")
    @classmethod
    def _is_key(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"\w{1,128}\Z", value):
            raise PydanticCustomError("key", "an access key id is 1 to 128 letters and digits")
        return value

    @field_validator("secret_access_key")
    @classmethod
    def _is_secret(cls, value: SecretStr | None) -> SecretStr | None:
        text = value.get_secret_value() if value else None
        if text is not None and (not text or any(ord(c) <= 32 or ord(c) > 126 for c in text)):
            raise PydanticCustomError("secret", "a secret access key is not empty and has no blanks")
        return value

    @field_validator("role_arn")
    @classmethod
    def _is_role(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(_ROLE, value):
            raise PydanticCustomError("role", "write the role as arn:aws:iam::<account>:role/<name>")
        return value

    @field_validator("external_id")
    @classmethod
    def _is_external(cls, value: str | None) -> str | None:
        if value is not None and not (2 <= len(value) <= 1224 and re.fullmatch(_EXTERNAL, value)):
            raise PydanticCustomError("external", "an external id has 2 to 1224 letters, digits or +=,.@:/-")
        return value

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise PydanticCustomError("keys", "access_key_id and secret_access_key go together")
        if self.external_id is not None and self.role_arn is None:
            raise PydanticCustomError("external", "external_id needs role_arn")
        return self

    @classmethod
    def takes_machine_credentials(cls, config: Mapping[str, Any]) -> bool:
        """Whether there is no access key."""
        return config.get("access_key_id") is None

    @classmethod
    def generates(cls, config: Mapping[str, Any]) -> bool:
        """Whether a role is assumed with the server's own credentials."""
        return cls.takes_machine_credentials(config) and config.get("role_arn") is not None


class AwsAccess(AwsIdentity):
    """Region, address and credentials.

    Without an access key the machine's own credentials are used: environment, profile, container or instance.
    """

    endpoint_url: Annotated[str | None, Connects(), Api(max_length=300, pattern=r"^https?://[^/ ]+/?$")] = (
        Field(None, description="Another address than the region's own, such as a VPC endpoint.")
    )

    @field_validator("endpoint_url")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        if value is not None and not _URL.match(value):
            raise PydanticCustomError("url", "write http:// or https://, a host and perhaps a port")
        return value.rstrip("/") if value else value


def aws_client(service: str, config: AwsAccess, timeout: float, attempts: int = 2, **more: Any) -> Any:
    """A boto3 client of this store.

    Args:
        service: AWS's name, such as ``kinesis``.
        config: settings with the secret.
        timeout: seconds that connecting and an answer may take together, all attempts included.
        attempts: how often a call is made at most; throttling is waited out in between.
        more: further settings of botocore's ``Config``.
    """
    import boto3
    from botocore.config import Config

    bound = max(0.2, timeout / attempts)
    limits = Config(
        connect_timeout=bound,
        read_timeout=bound,
        retries={"mode": "standard", "total_max_attempts": attempts},
        region_name=config.region,
        # Print and many shards ask at once from several threads.
        max_pool_connections=16,
        **more,
    )
    session = boto3.Session(botocore_session=aws_session(config, limits), region_name=config.region)
    return session.client(service, endpoint_url=config.endpoint_url, config=limits)


def aws_session(config: AwsIdentity, limits: Any) -> Any:
    """A botocore session with the identity's credentials.

    Args:
        config: settings with the secret.
        limits: botocore's ``Config`` of the calls that fetch a role's credentials.
    """
    import botocore.session

    own = botocore.session.get_session()
    if config.access_key_id is not None and config.secret_access_key is not None:
        own.set_credentials(config.access_key_id, config.secret_access_key.get_secret_value())
    if config.role_arn is not None:
        _take_role(own, config, limits)
    return own


def _take_role(own: Any, config: AwsIdentity, limits: Any) -> None:
    """Let the session's credentials fetch the role's, and fetch them again before they expire."""
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

    base = own.get_credentials()
    if base is None:
        return  # the first call says that there are none

    def client(service: str, **arguments: Any) -> Any:
        arguments.setdefault("region_name", config.region)
        return own.create_client(service, config=limits, **arguments)

    wanted = {"RoleSessionName": "leatstream"}
    if config.external_id is not None:
        wanted["ExternalId"] = config.external_id
    fetcher = AssumeRoleCredentialFetcher(client, base, config.role_arn, extra_args=wanted)
    own._credentials = DeferredRefreshableCredentials(
        method="assume-role", refresh_using=fetcher.fetch_credentials
    )
