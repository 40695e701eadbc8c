"""Stores: exactly one typed object per kind; secrets go in and never come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, model_validator

from leatstream.connectors.registry import with_secrets
from leatstream.errors import RequestError
from leatstream.model.objects import Store, StoreState
from leatstream.model.registered import SecretName
from leatstream.rest.schemas.base import OMIT, Body, Comment, Name, ObjectView, View, meta_fields, terraform
from leatstream.services.environment import Page
from leatstream.services.secret_values import SecretValue

# Kinds whose names are taken; a store of one of them is refused until its connector is built.
PLANNED_KINDS = ("snowflake", "databricks", "clickhouse", "oracle", "iceberg")
_SERVERS = (
    r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}(,([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})*$"
)
_KAFKA = "An Apache Kafka cluster, or one that speaks its protocol."
_TEXT = r"^[^\x00-\x1f\x7f]+$"
_PROTOCOLS = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]


_ROLE = r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$"


class _AwsIdentity(BaseModel):
    region: Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]{1,2}$")] = (
        Field(description="AWS region.", examples=["eu-west-1"])
    )
    access_key_id: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_]+$")] | None = (
        Field(None, description="Access key; without one the server's own AWS credentials are used.")
    )
    role_arn: Annotated[str, Field(max_length=2048, pattern=_ROLE)] | None = Field(
        None, description="Role to take on with these credentials."
    )
    external_id: (
        Annotated[str, Field(min_length=2, max_length=1224, pattern=r"^[A-Za-z0-9_+=,.@:/-]+$")] | None
    ) = Field(None, description="External id that the role asks for.")


class _Aws(_AwsIdentity):
    endpoint_url: Annotated[str, Field(max_length=300, pattern=r"^https?://[^/ ]+/?$")] | None = Field(
        None, description="Another address than the region's own, such as a VPC endpoint."
    )


class _AwsSecret(BaseModel):
    model_config = ConfigDict(extra="forbid")

    secret_access_key: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[!-~]+$")] | None = (
        Field(
            None,
            description="Secret of the access key; left out = the stored one stays.",
            json_schema_extra={"writeOnly": True},
        )
    )
    secret_access_key_secret: Name | None = Field(
        None, description="Name of the secret that holds the secret of the access key."
    )


class _AwsSecretView(BaseModel):
    secret_access_key_secret: str | None = Field(
        None, description="Name of the secret that holds the secret of the access key."
    )


class _AwsBody(_AwsSecret, _Aws):
    pass


class _AwsView(_AwsSecretView, _Aws):
    pass


class _Oauth(BaseModel):
    token_url: Annotated[str, Field(max_length=2000, pattern=r"^https?://[!-~]+$")] = Field(
        description="Token endpoint of the authorization server.",
        examples=["https://login.example.com/oauth2/token"],
    )
    client_id: Annotated[str, Field(min_length=1, max_length=255, pattern=_TEXT)] = Field(
        description="Client that asks for tokens."
    )
    scope: Annotated[str, Field(min_length=1, max_length=1000, pattern=_TEXT)] | None = Field(
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

    client_secret: Annotated[str, Field(min_length=1, max_length=2000, pattern=_TEXT)] | None = Field(
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


class MskBody(_AwsSecret, _AwsIdentity):
    """AWS credentials for Amazon MSK, with mechanism `aws_msk_iam`."""


class MskView(_AwsSecretView, _AwsIdentity):
    """AWS credentials for Amazon MSK; the key's secret is never shown."""


class _Sasl(BaseModel):
    mechanism: Literal["plain", "scram_sha_256", "scram_sha_512", "oauthbearer", "aws_msk_iam"] = Field(
        description="SASL mechanism."
    )
    username: Annotated[str, Field(min_length=1, max_length=255, pattern=_TEXT)] | None = Field(
        None, description="User name, with `plain` and `scram_sha_…`."
    )


class SaslBody(_Sasl):
    """User and password, its own or that of a secret; or what the mechanism asks for instead."""

    model_config = ConfigDict(extra="forbid")

    password: Annotated[str, Field(min_length=1, max_length=1000, pattern=_TEXT)] | None = Field(
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


class _Postgres(BaseModel):
    host: Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9._:\[\]-]+$")] = Field(
        description="Host name or address of the server.", examples=["db.example.com"]
    )
    port: Annotated[StrictInt, Field(ge=1, le=65535)] | None = Field(None, description="Port; default 5432.")
    database: Annotated[str, Field(min_length=1, max_length=63, pattern=_TEXT)] = Field(
        description="Name of the database."
    )
    username: Annotated[str, Field(min_length=1, max_length=63, pattern=_TEXT)] = Field(
        description="User name."
    )
    ssl_mode: Literal["disable", "prefer", "require", "verify_ca", "verify_full"] | None = Field(
        None, description="How to encrypt, and what to check of the server's certificate; default `prefer`."
    )
    ca_certificate: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(
        None, description="Certificate authority to trust, PEM; default the machine's own."
    )
    application_name: Annotated[str, Field(min_length=1, max_length=63, pattern=_TEXT)] | None = Field(
        None, description="What the server shows of our connections; default `leatstream`."
    )


class PostgresBody(_Postgres):
    """A database of a PostgreSQL server."""

    model_config = ConfigDict(extra="forbid")

    password: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")] | None = Field(
        None,
        description="Password; left out = the stored one stays.",
        json_schema_extra={"writeOnly": True},
    )
    password_secret: Name | None = Field(None, description="Name of the secret that holds the password.")


class PostgresView(_Postgres):
    """Settings of a PostgreSQL store, without secrets."""

    password_secret: str | None = Field(None, description="Name of the secret that holds the password.")


class KinesisBody(_AwsBody):
    """Kinesis Data Streams of one AWS region."""


class KinesisView(_AwsView):
    """Settings of a Kinesis store, without secrets."""


class _S3(BaseModel):
    bucket: Annotated[
        str, Field(min_length=3, max_length=63, pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    ] = Field(description="Name of the bucket.", examples=["acme-events"])
    prefix: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=512,
                pattern=r"^[A-Za-z0-9!_.*'()=@+,:&$;-]+(/[A-Za-z0-9!_.*'()=@+,:&$;-]+)*$",
            ),
        ]
        | None
    ) = Field(None, description="What all keys begin with, without slashes around it.", examples=["team/raw"])


class S3Body(_AwsBody, _S3):
    """A bucket of S3 or a server that speaks its protocol, or what lies below a prefix."""


class S3View(_AwsView, _S3):
    """Settings of an S3 store, without secrets."""


_KINDS = ("kafka", "kinesis", "postgres", "s3")
# A stored secret goes when the part that it belongs to is taken out.
_HALVES = {"secret_access_key": "access_key_id", "client_key": "client_certificate", "password": "username"}


class StoreKinds(BaseModel):
    """A typed object per kind; a store has exactly one of them."""

    kafka: KafkaBody | None = Field(
        None,
        description="An Apache Kafka cluster, or one that speaks its protocol.",
        json_schema_extra=terraform(mode="optional"),
    )
    kinesis: KinesisBody | None = Field(
        None,
        description="Kinesis Data Streams of one AWS region.",
        json_schema_extra=terraform(mode="optional"),
    )
    postgres: PostgresBody | None = Field(
        None,
        description="A database of a PostgreSQL server.",
        json_schema_extra=terraform(mode="optional"),
    )
    s3: S3Body | None = Field(
        None,
        description="A bucket of S3 or a server that speaks its protocol, or what lies below a prefix.",
        json_schema_extra=terraform(mode="optional"),
    )


class StoreBody(StoreKinds, Body):
    """A store: connectivity and access to a system of yours."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_store",
            path="/v1/stores/{name}",
            key=["name"],
            path_attributes={"name": "Name of the store, exact."},
            assume="stores",
            exactly_one_of=[list(_KINDS)],
            warn={"attribute": "status", "states": ["errored"]},
            attributes={"status": {"volatile": True}},
            **{"import": "{name}"},
        )
        | {
            "oneOf": [{"required": [kind]} for kind in _KINDS],
            "examples": [
                {"kafka": {"bootstrap_servers": "localhost:9092"}, "comment": "Web shop"},
                {"kinesis": {"region": "eu-west-1", "role_arn": "arn:aws:iam::123456789012:role/leatstream"}},
                {"postgres": {"host": "db.example.com", "database": "shop", "username": "leat"}},
                {"s3": {"region": "eu-west-1", "bucket": "acme-events", "prefix": "team/raw"}},
            ],
        }
    )

    comment: Comment = None
    schema_registry: Name | None = Field(
        None, description="Name of the schema registry that describes its records."
    )

    @model_validator(mode="before")
    @classmethod
    def _exactly_one_kind(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        for kind in PLANNED_KINDS:
            if kind in data:
                raise RequestError(
                    "unsupported",
                    f"Stores of kind {kind} are not built yet.",
                    pointer=f"#/{kind}",
                    hint=f"Use {' or '.join(_KINDS)}.",
                )
        if sum(data.get(kind) is not None for kind in _KINDS) != 1:
            raise ValueError(f"a store has exactly one object that tells its kind: {' or '.join(_KINDS)}")
        return data

    @property
    def kind(self) -> str:
        """Kind of the store: the name of its one typed object."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    def settings(self, secret_fields: Sequence[str]) -> tuple[dict[str, Any], dict[str, SecretValue]]:
        """Settings without secrets, and the secrets by dotted path (None = keep the stored one).

        Args:
            secret_fields: dotted paths of the kind's secret fields.

        Raises:
            RequestError: validation, a secret is given by value and by name.
        """
        config = getattr(self, self.kind).model_dump(exclude_none=True)
        secrets: dict[str, SecretValue] = {}
        for path in secret_fields:
            *parents, leaf = path.split(".")
            place: Any = config
            for parent in parents:
                place = place.get(parent) if isinstance(place, dict) else None
            if not isinstance(place, dict):
                continue
            named, value = place.pop(f"{leaf}_secret", None), place.pop(leaf, None)
            if named is not None and value is not None:
                pointer = f"#/{self.kind}/{path.replace('.', '/')}_secret"
                raise RequestError("validation", f"give {leaf} or {leaf}_secret, not both", pointer=pointer)
            if leaf not in _HALVES or value or named or _HALVES[leaf] in place:
                secrets[path] = SecretName(named) if named is not None else value
        return config, secrets


class StoreError(View):
    """Why a store did not answer."""

    code: str = Field(description="Stable code, such as store-unreachable.")
    detail: str = Field(description="What happened.")


class StoreStatus(View):
    """Whether the store answered when it was last asked."""

    state: StoreState = Field(description="pending, ready or errored.")
    message: str | None = Field(None, description="What is wrong.")
    server: dict[str, str] = Field(
        default_factory=dict,
        description="What the server tells of itself, such as its version.",
        json_schema_extra=OMIT,
    )
    checked_at: datetime | None = Field(None, description="When it was last asked.", json_schema_extra=OMIT)
    error: StoreError | None = Field(None, description="What is wrong.", json_schema_extra=OMIT)


class StoreView(ObjectView):
    """A store."""

    name: str = Field(description="Name of the store, exact.")
    kind: str = Field(description="Kind of the store, such as kafka.")
    comment: Comment = None
    schema_registry: str | None = Field(
        None, description="Name of the schema registry that describes its records."
    )
    kafka: KafkaView | None = Field(None, description="Settings of a Kafka store.")
    kinesis: KinesisView | None = Field(None, description="Settings of a Kinesis store.")
    postgres: PostgresView | None = Field(None, description="Settings of a PostgreSQL store.")
    s3: S3View | None = Field(None, description="Settings of an S3 store.")
    status: StoreStatus = Field(description="Whether the store answered when it was last asked.")

    @classmethod
    def from_domain(cls, item: Store) -> StoreView:
        """The answer for a store."""
        error = StoreError(code=item.error_code, detail=item.message or "") if item.error_code else None
        status = StoreStatus(
            state=item.state,
            message=item.message,
            server=dict(item.server),
            checked_at=item.checked_at,
            error=error,
        )
        names = {f"{path}_secret": name for path, name in item.secret_names.items()}
        config = with_secrets(item.config, names)
        views: dict[str, Any] = {
            "kafka": KafkaView,
            "kinesis": KinesisView,
            "postgres": PostgresView,
            "s3": S3View,
        }
        shown: dict[str, Any] = {item.kind: views[item.kind].model_validate(config)}
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            kind=item.kind,
            comment=item.comment,
            schema_registry=item.schema_registry,
            status=status,
            **shown,
        )


class StoreList(View):
    """One page of stores."""

    items: list[StoreView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Store]) -> StoreList:
        """The answer for a page."""
        items = [StoreView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)
