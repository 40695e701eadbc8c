"""What stores tell of their entities and records, in one form for every kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from leatstream.model.objects import Column
from leatstream.model.types import DataType


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table in a store.

    Attributes:
        type: the type that a relation's column has for it.
        native: the type in the store's words, such as ``character varying(20)``.
        filled: whether it may be left out of a row although it is NOT NULL: it has a default.
        generated: whether the store alone writes it.
        enum: whether its type is an enumeration.
        computed: whether its values follow from other columns of the row.
    """

    name: str
    type: DataType
    native: str = ""
    not_null: bool = False
    filled: bool = False
    generated: bool = False
    enum: bool = False
    comment: str | None = None
    computed: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """What an entity with columns has.

    Attributes:
        apart: why not all changes of its rows can be read as its own, with the tables that hold these rows;
            empty where they can.
        unique: column names of each unique key that rows can be matched by, the primary key's first.
        details: further facts about it: name to value.
    """

    columns: tuple[TableColumn, ...]
    primary_key: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    details: Mapping[str, str | int | None] = field(default_factory=dict)
    apart: str = ""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why rows cannot be written to a table, and what may be done about it."""

    detail: str
    hint: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A topic, data stream, table or path in a store.

    Attributes:
        properties: canonical property name to live value; None where it has no fixed value.
        configs: the entity's own settings in the store's words, only those set for it.
        table: of kinds whose entities are tables; columns and keys only where it is asked for by name.
        details: further facts from the store, such as the number of its files; for people.
        kind: of its store; services fill it in.
    """

    name: str
    properties: Mapping[str, int | None] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)
    table: Table | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    def planned(self, entity: Entity | None) -> Entity:
        """What it will be after a plan that brings it to the properties of ``entity``."""
        return self if entity is None else replace(self, properties={**self.properties, **entity.properties})


@dataclass(frozen=True, slots=True)
class StoredView:
    """A materialized view that a store holds, and one version of its rows.

    Attributes:
        entity: the view's name in the store.
        version: whose rows these are, an id; empty = the view's first ones, under their usual name.
        columns: of the view, in their order.
        primary_key: columns by which rows replace each other; empty = every row is kept.
        retention_ms: how long a row is seen after it was written; None = for ever.
    """

    entity: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    retention_ms: int | None = None
    version: str = ""


@dataclass(frozen=True, slots=True)
class SourceWatch:
    """What a source's store keeps for its reader, in bytes.

    Attributes:
        name: of the reader's place in the store, such as a replication slot.
        lag: how far the reader is behind.
        kept: what the store cannot throw away because of it.
        left: what may still be written before the reader loses its place; None where there is no bound.
    """

    name: str
    lag: int
    kept: int
    left: int | None


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it lies in the store. ``timestamp`` is epoch milliseconds.

    Attributes:
        fault: why it is no row, of kinds that know it where they read.
    """

    key: bytes | None
    value: bytes | None
    partition: int | str
    offset: int | str
    timestamp: int | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class RecordsFrom:
    """Where the reading of an entity's records begins.

    Attributes:
        beginning: with the first record that exists, else with the next new one.
        since: with records of this time on (epoch milliseconds); records without a time are left out.
        partition: in this partition or shard only.
        offset: of that partition, at this offset.
        after: partition to the offset behind which it continues; the others begin as the rest says.
    """

    beginning: bool = False
    since: int | None = None
    partition: str | None = None
    offset: int | None = None
    after: Mapping[str, int] = field(default_factory=dict)

    @property
    def reads_existing(self) -> bool:
        """Whether records that exist already may be among those wanted."""
        return self.beginning or self.since is not None or self.offset is not None or bool(self.after)

    @property
    def leaves_out(self) -> bool:
        """Whether some of the records that are read are not wanted."""
        return any(one is not None for one in (self.since, self.partition, self.offset)) or bool(self.after)

    def holds(self, record: Record) -> bool:
        """Whether a record is one of those wanted."""
        if self.partition is not None and str(record.partition) != self.partition:
            return False
        if self.offset is not None and int(record.offset) < self.offset:
            return False
        if (behind := self.after.get(str(record.partition))) is not None:
            return int(record.offset) > behind
        return self.since is None or (record.timestamp is not None and record.timestamp >= self.since)


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be written. The store gives it its place and its time."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class OptionFault:
    """What is wrong with a property of a relation."""

    name: str
    detail: str
    hint: str | None = None
