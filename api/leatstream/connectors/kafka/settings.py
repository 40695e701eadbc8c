"""A Kafka store's settings, and how the two client libraries want to hear them.

The fields' marks say what REST, Terraform and SQL call them. librdkafka (admin half) and the Java client
(Spark half) use different words for the same thing; both maps are made here, so that they agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from leatstream.connectors.kafka.login import (
    KafkaSasl,
    java_login,
    librdkafka_login,
    part_faults,
)
from leatstream.connectors.setting_values import certificate_checked
from leatstream.connectors.settings import Api, Connects, Receives, Secret, Sql, StoreSettings

SecurityProtocol = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]

_SERVER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})\Z")
_KEY = re.compile(r"-----BEGIN PRIVATE KEY-----.+-----END PRIVATE KEY-----\s*\Z", re.S)


_PEM = Api(min_length=1, max_length=100_000)


class KafkaTls(StoreSettings):
    """Transport encryption."""

    schema_name: ClassVar[str] = "Tls"

    ca_certificate: Annotated[str | None, Receives(), Sql("tls.ca_cert_file", pem=True), _PEM] = Field(
        None, description="Certificate authority to trust, PEM."
    )
    verify_hostname: Annotated[bool, Receives(), Sql("tls.verify_server_hostname")] = Field(
        True, description="Whether the broker's name must match its certificate; default true."
    )
    client_certificate: Annotated[str | None, Sql("tls.client.cert_file", pem=True), _PEM] = Field(
        None, description="Certificate that the store shows to the brokers (mTLS), PEM."
    )
    client_key: Annotated[
        SecretStr | None,
        Sql("tls.client.key_file", pem=True),
        Secret("the key", of="client_certificate"),
        _PEM,
    ] = Field(None, description="Private key of the client certificate, PEM (PKCS #8)")

    @field_validator("client_key")
    @classmethod
    def _is_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _KEY.search(value.get_secret_value().strip()):
            # The Java client takes no other form.
            raise PydanticCustomError(
                "key",
                "write the key as PEM text that begins with BEGIN PRIVATE KEY: PKCS #8 without a passphrase,"
                " as openssl pkcs8 -topk8 -nocrypt makes it",
            )
        return value

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.client_certificate is None) != (self.client_key is None):
            raise PydanticCustomError("keys", "client_certificate and client_key go together")
        return self

    _is_pem = field_validator("ca_certificate", "client_certificate")(certificate_checked)


class KafkaConfig(StoreSettings):
    """An Apache Kafka cluster, or one that speaks its protocol."""

    schema_name: ClassVar[str] = "Kafka"
    example: ClassVar[Mapping[str, Any]] = {"bootstrap_servers": "localhost:9092"}

    bootstrap_servers: Annotated[
        str,
        Connects(),
        Sql("uris", example="'uris' = 'host:9092,…'"),
        Api(
            min_length=3,
            max_length=2000,
            pattern=r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"
            r"(,([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})*$",
        ),
    ] = Field(description="Comma-separated host:port.", examples=["localhost:9092"])
    security_protocol: Annotated[SecurityProtocol, Receives()] = Field(
        "plaintext", description="How to connect; default plaintext."
    )
    sasl: KafkaSasl | None = Field(None, description="Login.")
    tls: KafkaTls | None = Field(None, description="Transport encryption.")

    @field_validator("bootstrap_servers")
    @classmethod
    def _servers(cls, value: str) -> str:
        servers = [part.strip() for part in value.split(",")]
        for server in servers:
            match = _SERVER.match(server)
            if match is None or not 0 < int(match[1]) < 65536:
                raise PydanticCustomError("servers", "write host:port, several joined by commas")
        return ",".join(servers)

    @model_validator(mode="wrap")
    @classmethod
    def _all_faults(cls, data: Any, handler: Any) -> Self:
        """Report what is wrong between fields beside what is wrong inside them, not only after it."""
        between = _between(data) if isinstance(data, Mapping) else []
        try:
            checked = cast("Self", handler(data))
        except ValidationError as error:
            inside = [
                InitErrorDetails(
                    type=PydanticCustomError("kafka", "{text}", {"text": e["msg"]}), loc=e["loc"], input=None
                )
                for e in error.errors(include_input=False, include_url=False)
            ]
            raise ValidationError.from_exception_data("kafka", inside + between, hide_input=True) from None
        if between:
            raise ValidationError.from_exception_data("kafka", between, hide_input=True)
        return checked


def _between(data: Mapping[str, Any]) -> list[InitErrorDetails]:
    protocol = data.get("security_protocol", "plaintext")
    if not isinstance(protocol, str):
        return []
    found: list[tuple[tuple[str, ...], str]] = []
    sasl, own = data.get("sasl"), ("security_protocol",)
    if protocol.startswith("sasl") and sasl is None:
        found.append((("sasl",), f"security_protocol {protocol} needs sasl with its mechanism"))
    if not protocol.startswith("sasl") and sasl is not None:
        found.append((own, f"sasl is set: use sasl_ssl or sasl_plaintext, not {protocol}"))
    if not protocol.endswith("ssl") and data.get("tls") is not None:
        found.append((own, f"tls is set: use ssl or sasl_ssl, not {protocol}"))
    if isinstance(sasl, Mapping) and sasl.get("mechanism") == "aws_msk_iam" and protocol != "sasl_ssl":
        found.append((own, "Amazon MSK takes AWS credentials over TLS only: use sasl_ssl"))
    if isinstance(sasl, Mapping):
        found += [(("sasl", *at), text) for at, text in part_faults(sasl)]
    return [
        InitErrorDetails(type=PydanticCustomError("kafka", "{text}", {"text": text}), loc=at, input=None)
        for at, text in found
    ]


def librdkafka_settings(config: KafkaConfig) -> dict[str, Any]:
    """The store's settings in librdkafka's words. Holds its secrets: never log it."""
    settings: dict[str, Any] = {
        "bootstrap.servers": config.bootstrap_servers,
        "security.protocol": config.security_protocol,
    }
    if config.sasl:
        settings |= librdkafka_login(config.sasl)
    if config.security_protocol.endswith("ssl"):
        tls = config.tls or KafkaTls.model_validate({})
        settings["ssl.endpoint.identification.algorithm"] = "https" if tls.verify_hostname else "none"
        if tls.ca_certificate:
            settings["ssl.ca.pem"] = tls.ca_certificate
        if tls.client_certificate and tls.client_key:
            settings["ssl.certificate.pem"] = tls.client_certificate
            settings["ssl.key.pem"] = tls.client_key.get_secret_value()
    return settings


def java_settings(config: KafkaConfig) -> dict[str, str]:
    """The store's settings in the Java client's words, without Spark's ``kafka.``. Holds its secrets."""
    settings = {
        "bootstrap.servers": config.bootstrap_servers,
        "security.protocol": config.security_protocol.upper(),
    }
    if config.sasl:
        settings |= java_login(config.sasl)
    if config.security_protocol.endswith("ssl"):
        tls = config.tls or KafkaTls.model_validate({})
        settings["ssl.endpoint.identification.algorithm"] = "https" if tls.verify_hostname else ""
        if tls.ca_certificate:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": tls.ca_certificate}
        if tls.client_certificate and tls.client_key:
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": tls.client_certificate,
                "ssl.keystore.key": tls.client_key.get_secret_value(),
            }
    return settings
