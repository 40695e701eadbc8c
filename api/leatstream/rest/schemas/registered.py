"""Secrets, schema registries and descriptor sources."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from leatstream.errors import RequestError
from leatstream.model.outside_secrets import OutsideReference
from leatstream.model.registered import DescriptorSource, SchemaRegistry, Secret, SecretName
from leatstream.rest.schemas.base import Comment, Name, ObjectView, OwnedBody, View, meta_fields, terraform
from leatstream.services.environment import Page
from leatstream.services.environment.outside_secrets import Look
from leatstream.services.nouns.schema_registries import RegistryStatus
from leatstream.services.nouns.secret_values import SecretValue

_NOTE_KEY = Annotated[str, Field(min_length=1, max_length=255)]
_NOTE = Annotated[str, Field(max_length=2000)]
_USER = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f]+$")]
_URIS = Annotated[str, Field(min_length=8, max_length=2000, pattern=r"^https?://[^\s@]+$")]
_PEM = Annotated[str, Field(min_length=50, max_length=200_000)]
_REFERENCE = Annotated[
    str, Field(min_length=12, max_length=1000, pattern=r"^secret://[a-z0-9-]+/[^\x00-\x1f\x7f]+$")
]
_BASE64 = Annotated[str, Field(min_length=4, max_length=950_000, pattern=r"^[A-Za-z0-9+/]+={0,2}$")]


class SecretBody(OwnedBody):
    """A secret: a value with a name, which is written and never read back, or a reference to one."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_secret",
            path="/v1/secrets/{name}",
            key=["name"],
            path_attributes={"name": "Name of the secret, exact."},
            attributes={a: {"volatile": True} for a in ("resolve_error", "resolved_at", "version")},
            **{"import": "{name}"},
        )
        | {"examples": [{"value": "s3cr3t", "comment": "Password of the Kafka user leat"}]}
    )

    comment: Comment = None
    type: Literal["generic_string"] = Field("generic_string", description="Type of the secret.")
    value: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(
        None,
        description="The secret itself; left out = the stored one stays.",
        json_schema_extra={"writeOnly": True},
    )
    reference: _REFERENCE | None = Field(
        None,
        description="Where the value is kept outside the catalog, in place of a value.",
        examples=["secret://vault/kv/leat/kafka#password"],
    )
    properties: Annotated[dict[_NOTE_KEY, _NOTE] | None, Field(max_length=100)] = Field(
        None, description="Notes beside it. They are not secret and are shown."
    )


class SecretView(ObjectView):
    """A secret, without its value."""

    name: str = Field(description="Name of the secret, exact.")
    comment: Comment = None
    type: str = Field(description="Type of the secret.")
    properties: dict[str, str] | None = Field(None, description="Notes beside it.")
    version: int = Field(description="Counts the values and references it has had, from 1.")
    reference: str | None = Field(None, description="Where the value is kept outside the catalog.")
    provider: str | None = Field(None, description="Secret store of the reference.")
    resolved_at: datetime | None = Field(
        None, description="When this server has last read the value there, since it started."
    )
    resolve_error: str | None = Field(None, description="Why the last try to read it failed.")

    @classmethod
    def from_domain(cls, item: Secret, look: Look = Look()) -> SecretView:  # noqa: B008 - immutable
        """The answer for a secret; ``look`` is how its reference was last looked up."""
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            comment=item.comment,
            type=item.kind,
            properties=dict(item.properties) or None,
            version=item.version,
            reference=item.outside,
            provider=OutsideReference.read(item.outside).provider if item.outside is not None else None,
            resolved_at=look.at,
            resolve_error=look.error,
        )


class AppliedSecret(View):
    """What uses a secret, and has its present value from now on."""

    stores: list[str] = Field(description="Stores that were connected again.")
    queries: list[str] = Field(description="Queries that start again, from their checkpoints.")
    left: int = Field(
        description="How many more queries keep the old value, as the caller may not operate them."
    )


class SecretList(View):
    """One page of secrets."""

    items: list[SecretView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Secret], look: Callable[[str | None], Look]) -> SecretList:
        """The answer for a page; ``look`` says how references were last looked up."""
        items = [SecretView.from_domain(item, look(item.outside)) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)


class SchemaRegistryBody(OwnedBody):
    """A schema registry: where schemas of records are kept. Stores name theirs."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_schema_registry",
            path="/v1/schema-registries/{name}",
            key=["name"],
            path_attributes={"name": "Name of the schema registry, exact."},
            assume="schema_registries",
            **{"import": "{name}"},
        )
        | {"examples": [{"type": "confluent", "uris": "https://registry.example.com:8081"}]}
    )

    comment: Comment = None
    type: Literal["confluent", "confluent_cloud", "apicurio"] = Field(description="Kind of the registry.")
    uris: _URIS = Field(
        description="Addresses with http:// or https://, joined by commas.",
        examples=["https://registry.example.com:8081"],
    )
    username: _USER | None = Field(None, description="User; of Confluent Cloud the API key.")
    password: _USER | None = Field(
        None,
        description="Password, of Confluent Cloud the API key's secret; left out = the stored one stays.",
        json_schema_extra={"writeOnly": True},
    )
    password_secret: Name | None = Field(None, description="Name of the secret that holds the password.")
    ca_certificate: _PEM | None = Field(
        None, description="PEM of the authority that signed its certificate; left out = the system's."
    )

    def secrets(self) -> dict[str, SecretValue]:
        """The password by value, by name, or None: the stored one stays.

        Raises:
            RequestError: validation, it is given twice.
        """
        if self.password is not None and self.password_secret is not None:
            raise RequestError(
                "validation", "Give password or password_secret, not both.", pointer="#/password_secret"
            )
        if self.username is None and self.password is None and self.password_secret is None:
            return {}  # a stored password belongs to its user
        return {"password": SecretName(self.password_secret) if self.password_secret else self.password}


class SchemaRegistryView(ObjectView):
    """A schema registry, without its password."""

    name: str = Field(description="Name of the schema registry, exact.")
    comment: Comment = None
    type: str = Field(description="Kind of the registry.")
    uris: str = Field(description="Addresses, joined by commas.")
    username: str | None = Field(None, description="User, or API key.")
    password_secret: str | None = Field(None, description="Name of the secret that holds the password.")
    ca_certificate: str | None = Field(None, description="PEM of the authority that signed its certificate.")

    @classmethod
    def from_domain(cls, item: SchemaRegistry) -> SchemaRegistryView:
        """The answer for a schema registry."""
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            comment=item.comment,
            type=item.kind,
            uris=item.uris,
            username=item.username,
            password_secret=item.secret_names.get("password"),
            ca_certificate=item.ca_certificate,
        )


class RegistryStatusView(View):
    """How it went to ask a schema registry."""

    ready: bool = Field(description="Whether it answered.")
    message: str | None = Field(None, description="Why it did not.")
    error_code: str | None = Field(None, description="Code of the problem, such as `registry-unreachable`.")

    @classmethod
    def from_domain(cls, item: RegistryStatus) -> RegistryStatusView:
        """The answer for a test."""
        return cls(ready=item.ready, message=item.message, error_code=item.error_code)


class SchemaRegistryList(View):
    """One page of schema registries."""

    items: list[SchemaRegistryView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[SchemaRegistry]) -> SchemaRegistryList:
        """The answer for a page."""
        items = [SchemaRegistryView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)


class DescriptorSourceBody(OwnedBody):
    """A descriptor source: a compiled set of protobuf message types."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_descriptor_source",
            path="/v1/descriptor-sources/{name}",
            key=["name"],
            path_attributes={"name": "Name of the descriptor source, exact."},
            assume="descriptor_sources",
            attributes={a: {"volatile": True} for a in ("messages", "sha256", "size")},
            **{"import": "{name}"},
        )
        | {"examples": [{"descriptor_set": "CiQKB2EucHJvdG8SBHNob3AiEwoFT3JkZXISCgoCaWQYASABKAk="}]}
    )

    comment: Comment = None
    descriptor_set: _BASE64 = Field(
        description="The file that protoc --descriptor_set_out wrote, in base64; in Terraform filebase64(…)."
    )


class MessageTypeView(View):
    """A message type."""

    name: str = Field(description="Full name.")
    file: str = Field(description="The .proto file it stands in.")
    fields: list[str] = Field(description="Names of its fields.")


class DescriptorSourceView(ObjectView):
    """A descriptor source."""

    name: str = Field(description="Name of the descriptor source, exact.")
    comment: Comment = None
    descriptor_set: str | None = Field(None, description="The file, in base64; left out in lists.")
    sha256: str = Field(description="SHA-256 of the file, hex.")
    size: int = Field(description="Size of the file, bytes.")
    messages: list[MessageTypeView] = Field(description="The message types in it.")

    @classmethod
    def from_domain(cls, item: DescriptorSource, *, whole: bool = True) -> DescriptorSourceView:
        """The answer for a descriptor source."""
        messages = [MessageTypeView(name=m.name, file=m.file, fields=list(m.fields)) for m in item.messages]
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            comment=item.comment,
            descriptor_set=item.descriptor_set if whole else None,
            sha256=item.sha256,
            size=item.size,
            messages=messages,
        )


class DescriptorSourceList(View):
    """One page of descriptor sources."""

    items: list[DescriptorSourceView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[DescriptorSource]) -> DescriptorSourceList:
        """The answer for a page."""
        items = [DescriptorSourceView.from_domain(item, whole=False) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)
