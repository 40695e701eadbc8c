"""How a Kafka store logs in by SASL, in the words of both client libraries.

librdkafka asks this process for tokens (``kafka.tokens``); the Java client fetches its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from leatstream.connectors.aws.access import AwsIdentity
from leatstream.connectors.setting_values import certificate_checked
from leatstream.connectors.settings import NAME_PATTERN, Api, Connects, Receives, Secret, Sql, StoreSettings

Mechanism = Literal["plain", "scram_sha_256", "scram_sha_512", "oauthbearer", "aws_msk_iam"]

_WIRE_MECHANISM = {
    "plain": "PLAIN",
    "scram_sha_256": "SCRAM-SHA-256",
    "scram_sha_512": "SCRAM-SHA-512",
    "oauthbearer": "OAUTHBEARER",
    "aws_msk_iam": "AWS_MSK_IAM",
}
# SQL's words for the mechanisms.
HASH_WORDS: Mapping[str, Mechanism] = {
    "plain": "plain",
    "sha256": "scram_sha_256",
    "sha512": "scram_sha_512",
    "oauthbearer": "oauthbearer",
    "aws_msk_iam": "aws_msk_iam",
}
_SECURITY = "org.apache.kafka.common.security"
_URL = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?(?:[/?][!-~]*)?\Z")
# RFC 7628: a name has letters only; "auth" is the token's own.
_EXTENSION = re.compile(r"(?!auth\Z)[A-Za-z]{1,100}\Z")
_VALUE = re.compile(r"[ -~\t]{1,1000}\Z")
# What each mechanism takes beside itself; what is not here takes a user name and a password.
_PARTS = {"oauthbearer": ("oauth",), "aws_msk_iam": ("aws",)}
# Where it is asked for, the driver's JVM needs this library of Amazon's.
MSK_LIBRARY = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"


def _parted(url: str) -> bool:
    """Whether host and port are what they look like."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def secret_checked(value: SecretStr | None) -> SecretStr | None:
    """A secret that both libraries can hear, or the validation error."""
    text = None if value is None else value.get_secret_value()
    if text is not None and (not text or any(ord(c) < 32 for c in text)):
        raise PydanticCustomError("password", "a secret is not empty and has no control characters")
    return value


class KafkaOauth(StoreSettings):
    """OAuth 2.0 client credentials, with mechanism `oauthbearer`."""

    schema_name: ClassVar[str] = "Oauth"

    token_url: Annotated[
        str,
        Connects(),
        Sql("kafka.sasl.oauth.token_url"),
        Api(max_length=2000, pattern=r"^https?://[!-~]+$"),
    ] = Field(
        description="Token endpoint of the authorization server.",
        examples=["https://login.example.com/oauth2/token"],
    )
    client_id: Annotated[str, Sql("kafka.sasl.oauth.client_id"), Api(pattern=NAME_PATTERN)] = Field(
        min_length=1, max_length=255, description="Client that asks for tokens."
    )
    scope: Annotated[
        str | None,
        Sql("kafka.sasl.oauth.scope"),
        Api(min_length=1, max_length=1000, pattern=NAME_PATTERN),
    ] = Field(None, description="Scopes to ask for, joined by blanks.")
    extensions: Annotated[dict[str, str], Sql("kafka.sasl.oauth.extensions"), Api(max_length=20)] = Field(
        default_factory=dict,
        description="SASL extensions to send to the brokers, such as `logicalCluster`.",
    )
    ca_certificate: Annotated[
        str | None,
        Receives(),
        Sql("kafka.sasl.oauth.ca_cert_file", pem=True),
        Api(min_length=1, max_length=100_000),
    ] = Field(
        None, description="Certificate authority of the token endpoint, PEM; default the machine's own."
    )
    client_secret: Annotated[
        SecretStr,
        Sql("kafka.sasl.oauth.client_secret"),
        Secret("the secret of the client", of="client_id"),
        Api(min_length=1, max_length=2000, pattern=NAME_PATTERN),
    ] = Field(description="Secret of the client")

    @field_validator("token_url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if not _URL.match(value) or "#" in value or not _parted(value):
            raise PydanticCustomError(
                "url", "write https:// or http://, a host, perhaps a port, and the path"
            )
        return value

    @field_validator("client_id")
    @classmethod
    def _no_control(cls, value: str) -> str:
        if any(ord(c) < 32 for c in value):
            raise PydanticCustomError("client", "a client id has no control characters")
        return value

    @field_validator("scope")
    @classmethod
    def _is_scope(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"[!#-\[\]-~]+(?: [!#-\[\]-~]+)*\Z", value):
            raise PydanticCustomError("scope", "scopes are words joined by single blanks")
        return value

    @field_validator("extensions")
    @classmethod
    def _are_extensions(cls, value: dict[str, str]) -> dict[str, str]:
        if not all(_EXTENSION.match(k) and _VALUE.match(v) for k, v in value.items()):
            text = "the name of an extension has letters only and is not auth, its value is printable ASCII"
            raise PydanticCustomError("extensions", text)
        return value

    _pem = field_validator("ca_certificate")(certificate_checked)
    _secret = field_validator("client_secret")(secret_checked)


class KafkaAws(AwsIdentity):
    """AWS credentials for Amazon MSK, with mechanism `aws_msk_iam`."""

    schema_name: ClassVar[str] = "Msk"
    sql_keys: ClassVar[Mapping[str, str]] = {
        "region": "kafka.msk.aws_region",
        "role_arn": "kafka.msk.iam_role_arn",
        "external_id": "kafka.msk.external_id",
        "access_key_id": "kafka.msk.access_key_id",
        "secret_access_key": "kafka.msk.secret_access_key",
    }

    @model_validator(mode="after")
    def _what_java_can(self) -> Self:
        if self.access_key_id is not None and self.role_arn is None:
            text = "Amazon's library takes an access key only to take on a role: give role_arn too, or no key"
            raise PydanticCustomError("keys", text)
        if self.access_key_id is not None and self.external_id is not None:
            text = "Amazon's library sends no external_id with an access key of the store's: give one of them"
            raise PydanticCustomError("external", text)
        return self


class KafkaSasl(StoreSettings):
    """User and password, or what the mechanism asks for instead."""

    schema_name: ClassVar[str] = "Sasl"

    # PLAIN sends in clear what SCRAM only proves, so secrets are not sent along when it changes.
    mechanism: Annotated[
        Mechanism, Receives(), Sql("kafka.sasl.hash_function", words={**HASH_WORDS, "none": ""})
    ] = Field(description="SASL mechanism.")
    username: Annotated[str | None, Sql("kafka.sasl.username"), Api(pattern=NAME_PATTERN)] = Field(
        None, min_length=1, max_length=255, description="User name, with `plain` and `scram_sha_…`."
    )
    password: Annotated[
        SecretStr | None,
        Sql("kafka.sasl.password"),
        Secret("the password", of="username"),
        Api(min_length=1, max_length=1000, pattern=NAME_PATTERN),
    ] = Field(None, description="Password")
    oauth: KafkaOauth | None = Field(None, description="Client credentials, with `oauthbearer`.")
    aws: KafkaAws | None = Field(None, description="AWS credentials, with `aws_msk_iam`.")

    @field_validator("username")
    @classmethod
    def _no_control(cls, value: str | None) -> str | None:
        if value is not None and any(ord(c) < 32 for c in value):
            raise PydanticCustomError("username", "a user name has no control characters")
        return value

    _secret = field_validator("password")(secret_checked)

    @property
    def hint(self) -> str:
        """What to check when the brokers refuse the login."""
        if self.mechanism == "oauthbearer":
            return "Check sasl.oauth: its scope and extensions, and that the brokers trust its tokens."
        if self.mechanism == "aws_msk_iam":
            return "Check sasl.aws, and that the policy allows kafka-cluster:Connect to this cluster."
        return "Check sasl.username, sasl.password and sasl.mechanism."


def part_faults(sasl: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Which parts the mechanism lacks or does not take: path of a field, and what is wrong with it."""
    mechanism = sasl.get("mechanism")
    if not isinstance(mechanism, str) or mechanism not in _WIRE_MECHANISM:
        return []
    wanted = _PARTS.get(mechanism, ("username", "password"))
    lacks = [((part,), f"mechanism {mechanism} needs {part}") for part in wanted if sasl.get(part) is None]
    known = ("username", "password", *(part for parts in _PARTS.values() for part in parts))
    strange = [
        ((part,), f"mechanism {mechanism} takes no {part}")
        for part in known
        if part not in wanted and sasl.get(part) is not None
    ]
    return [*lacks, *strange]


def librdkafka_login(sasl: KafkaSasl) -> dict[str, Any]:
    """The login in librdkafka's words; where it needs tokens, the client must be given ``oauth_cb``."""
    if sasl.aws is not None:
        # MSK takes the signed request as a bearer token too, which librdkafka can show.
        return {"sasl.mechanism": "OAUTHBEARER"}
    settings: dict[str, Any] = {"sasl.mechanism": _WIRE_MECHANISM[sasl.mechanism]}
    if sasl.username is not None and sasl.password is not None:
        settings |= {"sasl.username": sasl.username, "sasl.password": sasl.password.get_secret_value()}
    return settings


def java_login(sasl: KafkaSasl) -> dict[str, str]:
    """The login in the Java client's words. Holds its secrets.

    The JAAS line is made here from checked parts only; a user cannot bring a login module of their own.
    """
    settings = {"sasl.mechanism": _WIRE_MECHANISM[sasl.mechanism]}
    if sasl.oauth is not None:
        return settings | _java_oauth(sasl.oauth)
    if sasl.aws is not None:
        return settings | _java_aws(sasl.aws)
    kind = "plain.Plain" if sasl.mechanism == "plain" else "scram.Scram"
    secret = sasl.password.get_secret_value() if sasl.password else ""
    line = _jaas(f"{_SECURITY}.{kind}LoginModule", {"username": sasl.username or "", "password": secret})
    return settings | {"sasl.jaas.config": line}


def _java_oauth(oauth: KafkaOauth) -> dict[str, str]:
    options = {"clientId": oauth.client_id, "clientSecret": oauth.client_secret.get_secret_value()}
    if oauth.scope:
        options["scope"] = oauth.scope
    options |= {f"extension_{name}": value for name, value in oauth.extensions.items()}
    if oauth.ca_certificate:
        # For the token endpoint alone: the brokers' own authority stands beside the login.
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": oauth.ca_certificate}
    return {
        "sasl.jaas.config": _jaas(f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule", options),
        "sasl.login.callback.handler.class": f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": oauth.token_url,
        # As RFC 6749 has it, and as our own side does it.
        "sasl.oauthbearer.header.urlencode": "true",
        "sasl.login.connect.timeout.ms": "5000",
        "sasl.login.read.timeout.ms": "5000",
    }


def _java_aws(aws: KafkaAws) -> dict[str, str]:
    secret = aws.secret_access_key.get_secret_value() if aws.secret_access_key else None
    options = {
        "awsRoleArn": aws.role_arn,
        "awsRoleExternalId": aws.external_id,
        "awsRoleAccessKeyId": aws.access_key_id,
        "awsRoleSecretAccessKey": secret,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if aws.role_arn is not None:
        given |= {"awsRoleSessionName": "leatstream", "awsStsRegion": aws.region}
    return {
        "sasl.jaas.config": _jaas("software.amazon.msk.auth.iam.IAMLoginModule", given),
        "sasl.client.callback.handler.class": MSK_LIBRARY,
    }


def _jaas(module: str, options: Mapping[str, str]) -> str:
    return " ".join([f"{module} required", *(f"{k}={_quoted(v)}" for k, v in options.items())]) + ";"


def _quoted(text: str) -> str:
    """A quoted string of the JAAS grammar (Java's stream tokenizer: backslash escapes, no line breaks)."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'
