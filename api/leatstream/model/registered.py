"""Objects that others point to: secrets, schema registries, descriptor sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from leatstream.model.objects import DesiredState, Meta


@dataclass(frozen=True, slots=True)
class SecretName:
    """A secret value that is not spelt out: the name of the secret that holds it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A named secret value, which is written and never read back.

    Attributes:
        kind: ``generic_string`` so far.
        version: counts values; after a new one, stores that use it reconnect.
        properties: what the user notes beside it; not secret.
        outside: where the value is kept outside the catalog; None = it is sealed here.
    """

    meta: Meta
    name: str
    kind: str
    version: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    outside: str | None = None

    @property
    def reference(self) -> str:
        """Under which the value is sealed."""
        return f"secret://catalog/{self.meta.id}/value"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistry:
    """Where schemas of records are kept. Stores name the one that belongs to them.

    Attributes:
        kind: ``confluent``, ``confluent_cloud`` or ``apicurio``.
        uris: addresses, joined by commas.
        username: user, or the API key of Confluent Cloud.
        ca_certificate: PEM of the authority that signed its certificate; None = the system's.
        secrets: ``password`` to its reference, if there is one; never values.
        secret_names: ``password`` to the secret that holds it, where the user named one.
    """

    meta: Meta
    name: str
    kind: str
    uris: str
    username: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    secret_names: Mapping[str, str] = field(default_factory=dict)
    ca_certificate: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDefaults:
    """What a caller's names mean when a request says nothing; ``name`` is the caller's."""

    meta: Meta
    name: str
    database: str | None = None
    schema: str | None = None
    store: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageType:
    """A message of a descriptor set: its full name, the file it stands in, the names of its fields."""

    name: str
    file: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorSource:
    """A compiled protobuf descriptor set.

    Attributes:
        descriptor_set: the file, in base64.
        sha256: of the file, hex.
        size: of the file, bytes.
    """

    meta: Meta
    name: str
    descriptor_set: str
    sha256: str
    size: int
    messages: tuple[MessageType, ...] = ()
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Queries and streams that were made together and go together.

    Attributes:
        sql: BEGIN APPLICATION … END APPLICATION, verbatim.
        context: database, schema and store that its first statement was read in.
        queries: names, in the order they were made.
        relations: full names of the streams and changelogs it declared by columns.
        virtual: names of its virtual relations.
        desired_state: what is wanted of its queries.
        deleting: it is deleted when the last of its queries has ended.
        plan: what the newest version did, as ``statements:validate`` shows it before.
    """

    meta: Meta
    name: str
    sql: str
    context: Mapping[str, str | None]
    queries: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    virtual: tuple[str, ...] = ()
    comment: str | None = None
    desired_state: DesiredState = DesiredState.RUNNING
    deleting: bool = False
    plan: Mapping[str, Any] = field(default_factory=dict)


class SavepointState(StrEnum):
    """Whether a savepoint can be used."""

    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """A copy of a query's checkpoint, with what it is a checkpoint of.

    Attributes:
        query, query_id: of which it was taken; it may be gone.
        job: the JobSpec document, without attempt and secrets.
        checkpoint_generation: of the checkpoint that was copied.
        state: pending until the job has stopped and the copy is whole; deleting until its files are gone.
        batch: the last one that was committed.
        offsets: relation to the offsets that this batch ended at, in the store's words.
    """

    meta: Meta
    name: str
    query: str
    query_id: str
    query_generation: int
    sql: str
    job: Mapping[str, Any]
    checkpoint_generation: int
    state: SavepointState = SavepointState.PENDING
    message: str | None = None
    batch: int | None = None
    offsets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDrop:
    """A note that an entity of a store is dropped; each drop counts its generation on, at begin and end.

    Attributes:
        at_work: how many calls the store has not answered yet; servers may drop the same entity at once.
    """

    meta: Meta
    store: str
    entity: str
    at_work: int = 0

    @staticmethod
    def key_of(store: str, entity: str) -> str:
        """What it is found by."""
        return f"{store}/{entity}"
