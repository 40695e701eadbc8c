"""Descriptor sources: compiled protobuf descriptor sets and the messages in them."""

from __future__ import annotations

import base64
import binascii
import hashlib

from leatstream.errors import RequestError
from leatstream.formats.descriptor_set import read_messages
from leatstream.model.objects import Meta
from leatstream.model.registered import DescriptorSource, MessageType
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Precondition, Principal, Stored
from leatstream.services.environment.authorization import WRITE, authorize
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.noun import NounService

MAX_BYTES = 700_000


def put_descriptor_source(
    env: Environment,
    principal: Principal,
    name: str,
    descriptor_set: str,
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[DescriptorSource]:
    """Create or replace.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        descriptor_set: the file that ``protoc --descriptor_set_out`` wrote, in base64.
        comment: free text.
        pre: precondition.

    Raises:
        RequestError: validation, it is no descriptor set.
        CatalogError: preconditions.
    """
    authorize(principal, WRITE, "descriptor source", name)
    data, messages = read_descriptor_set(descriptor_set)

    def make(meta: Meta, _: DescriptorSource | None) -> DescriptorSource:
        return DescriptorSource(
            meta=meta,
            name=name,
            descriptor_set=descriptor_set,
            sha256=hashlib.sha256(data).hexdigest(),
            size=len(data),
            messages=messages,
            comment=comment,
        )

    with env.open_unit() as unit:
        stored = upsert(env, principal, unit.descriptor_sources, name, "descriptor source", "dsc", pre, make)
        unit.commit()
    return stored


def read_descriptor_set(text: str) -> tuple[bytes, tuple[MessageType, ...]]:
    """Bytes and messages of a descriptor set in base64; RequestError if it is none."""
    try:
        data = base64.b64decode(text, validate=True)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES} bytes")
        found = read_messages(data)
    except binascii.Error:
        raise RequestError(
            "validation", "The descriptor set is not base64.", pointer="#/descriptor_set"
        ) from None
    except ValueError as error:
        raise RequestError(
            "validation",
            f"This is not a protobuf descriptor set: {error}.",
            pointer="#/descriptor_set",
            hint="protoc --include_imports --descriptor_set_out=x.desc x.proto",
        ) from None
    return data, tuple(MessageType(name=m.name, file=m.file, fields=m.fields) for m in found)


def _dependents(unit: UnitOfWork, source: DescriptorSource) -> list[str]:
    return [
        f"stream {r.fqn}"
        for r in unit.unfiltered.relations.page(limit=100_000)
        if r.find_property("value.descriptor.source") == source.name
    ]


DESCRIPTOR_SOURCES = NounService(
    "descriptor source",
    "descriptor sources",
    "descriptor-sources",
    lambda unit: unit.descriptor_sources,
    _dependents,
)
get_descriptor_source, require_descriptor_source = DESCRIPTOR_SOURCES.get, DESCRIPTOR_SOURCES.require
list_descriptor_sources, delete_descriptor_source = DESCRIPTOR_SOURCES.list, DESCRIPTOR_SOURCES.delete
