"""Kafka clusters: where they are, how to log in, how to encrypt."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from leatstream.rest.schemas.base import TEXT, Name
from leatstream.rest.schemas.kinds.aws import AwsIdentity, AwsSecret, AwsSecretView

_SERVERS = (
    r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}(,([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})*$"
)
_PROTOCOLS = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]


class _Oauth(BaseModel):
    token_url: Annotated[str, Field(max_length=2000, pattern=r"^https?://[!-~]+$")] = Field(
        description="Token endpoint of the authorization server.",
        examples=["https://login.example.com/oauth2/token"],
    )
    client_id: Annotated[str, Field(min_length=1, max_length=255, pattern=TEXT)] = Field(
        description="Client that asks for tokens."
    )
    scope: Annotated[str, Field(min_length=1, max_length=1000, pattern=TEXT)] | None = Field(
        None, description="Scopes to ask for, joined by blanks."
    )
    extensions: dict[str, str] | None = Field(
        None,
        description="SASL extensions that the brokers are told, such as `logicalCluster`.",
        max_length=20,
    )
    ca_certificate: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(
        None, description="Certificate authority of the token endpoint, PEM; default the machine's own."
    )


class OauthBody(_Oauth):
    """OAuth 2.0 client credentials, with mechanism `oauthbearer`."""

    model_config = ConfigDict(extra="forbid")

    client_secret: Annotated[str, Field(min_length=1, max_length=2000, pattern=TEXT)] | None = Field(
        None,
        description="Secret of the client; left out = the stored one stays.",
        json_schema_extra={"writeOnly": True},
    )
    client_secret_secret: Name | None = Field(
        None, description="Name of the secret that holds the secret of the client."
    )


class OauthView(_Oauth):
    """OAuth 2.0 client credentials; the client's secret is never shown."""

    client_secret_secret: str | None = Field(
        None, description="Name of the secret that holds the secret of the client."
    )


class MskBody(AwsSecret, AwsIdentity):
    """AWS credentials for Amazon MSK, with mechanism `aws_msk_iam`."""


class MskView(AwsSecretView, AwsIdentity):
    """AWS credentials for Amazon MSK; the key's secret is never shown."""


class _Sasl(BaseModel):
    mechanism: Literal["plain", "scram_sha_256", "scram_sha_512", "oauthbearer", "aws_msk_iam"] = Field(
        description="SASL mechanism."
    )
    username: Annotated[str, Field(min_length=1, max_length=255, pattern=TEXT)] | None = Field(
        None, description="User name, with `plain` and `scram_sha_…`."
    )


class SaslBody(_Sasl):
    """User and password, its own or that of a secret; or what the mechanism asks for instead."""

    model_config = ConfigDict(extra="forbid")

    password: Annotated[str, Field(min_length=1, max_length=1000, pattern=TEXT)] | None = Field(
        None,
        description="Password; left out = the stored one stays.",
        json_schema_extra={"writeOnly": True},
    )
    password_secret: Name | None = Field(None, description="Name of the secret that holds the password.")
    oauth: OauthBody | None = Field(None, description="Client credentials, with `oauthbearer`.")
    aws: MskBody | None = Field(None, description="AWS credentials, with `aws_msk_iam`.")


class SaslView(_Sasl):
    """How the store logs in; no secret is ever shown."""

    password_secret: str | None = Field(None, description="Name of the secret that holds the password.")
    oauth: OauthView | None = Field(None, description="Client credentials, with `oauthbearer`.")
    aws: MskView | None = Field(None, description="AWS credentials, with `aws_msk_iam`.")


class _Tls(BaseModel):
    ca_certificate: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(
        None, description="Certificate authority to trust, PEM."
    )
    verify_hostname: StrictBool | None = Field(
        None, description="Whether the broker's name must match its certificate; default true."
    )
    client_certificate: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(
        None, description="Certificate that the store shows to the brokers (mTLS), PEM."
    )


class TlsBody(_Tls):
    """Transport encryption."""

    model_config = ConfigDict(extra="forbid")

    client_key: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(
        None,
        description="Private key of the client certificate, PEM (PKCS #8); left out = the stored one stays.",
        json_schema_extra={"writeOnly": True},
    )
    client_key_secret: Name | None = Field(None, description="Name of the secret that holds the key.")


class TlsView(_Tls):
    """Transport encryption; the client's key is never shown."""

    client_key_secret: str | None = Field(None, description="Name of the secret that holds the key.")


class _Kafka(BaseModel):
    bootstrap_servers: Annotated[str, Field(min_length=3, max_length=2000, pattern=_SERVERS)] = Field(
        description="Comma-separated host:port.", examples=["localhost:9092"]
    )
    security_protocol: _PROTOCOLS | None = Field(None, description="How to connect; default plaintext.")


class KafkaBody(_Kafka):
    """An Apache Kafka cluster, or one that speaks its protocol."""

    model_config = ConfigDict(extra="forbid")

    sasl: SaslBody | None = Field(None, description="Login.")
    tls: TlsBody | None = Field(None, description="Transport encryption.")


class KafkaView(_Kafka):
    """Settings of a Kafka store, without secrets."""

    sasl: SaslView | None = Field(None, description="Login.")
    tls: TlsView | None = Field(None, description="Transport encryption.")
