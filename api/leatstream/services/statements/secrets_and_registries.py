"""Statements about secrets, schema registries and descriptor sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from leatstream.connectors.destinations import hosts_in
from leatstream.errors import CatalogError, LeatstreamError, RequestError
from leatstream.model.outside_secrets import OutsideReference
from leatstream.model.registered import DescriptorSource, SchemaRegistry, Secret, SecretName
from leatstream.services.environment import Environment, Precondition, Principal
from leatstream.services.environment.pages import every
from leatstream.services.environment.results import Run, StatementResult
from leatstream.services.nouns import descriptor_sources, named_secrets, schema_registries
from leatstream.services.nouns.names import single
from leatstream.services.nouns.places import refuse_hosts
from leatstream.services.nouns.secret_values import SecretValue
from leatstream.services.statements.result_tables import (
    META,
    Table,
    meta_cells,
    pairs,
    text_columns,
)
from leatstream.sql import statements as ast
from leatstream.sql.registered_properties import (
    read_descriptor_file,
    read_registry_properties,
    read_secret_properties,
)


def create(run: Run, s: ast.CreateRegistered) -> StatementResult:
    """CREATE SECRET, SCHEMA_REGISTRY or DESCRIPTOR_SOURCE."""
    name = single(s.name)
    pre = Precondition() if s.or_replace else Precondition(must_be_new=True)
    noun = NOUN_OF[type(s)]
    try:
        _CREATE[type(s)](run, s, name, pre)
    except CatalogError as error:
        if not (s.if_not_exists and error.code == "already-exists"):
            raise
    return StatementResult(f"create_{noun}", object={"noun": noun, "name": name})


def _secret(run: Run, s: ast.CreateRegistered, name: str, pre: Precondition) -> None:
    read = read_secret_properties(s.properties)
    comment = s.comment if s.comment is not None else read.comment
    with _at(s, "reference"):
        named_secrets.put_secret(
            run.env,
            run.principal,
            name,
            read.value,
            properties=read.notes,
            comment=comment,
            pre=pre,
            reference=read.reference,
        )


def _registry(run: Run, s: ast.CreateRegistered, name: str, pre: Precondition) -> None:
    read = read_registry_properties(s.properties)
    secrets: dict[str, SecretValue] = {} if read.password is None else {"password": read.password}
    schema_registries.put_registry(
        run.env,
        run.principal,
        name,
        read.kind or "",
        read.uris or "",
        read.username,
        secrets,
        s.comment if s.comment is not None else read.comment,
        pre,
        read.ca_certificate,
    )


def _descriptors(run: Run, s: ast.CreateRegistered, name: str, pre: Precondition) -> None:
    file, comment = read_descriptor_file(s.properties)
    data = run.files.get(file)
    if data is None:
        raise RequestError(
            "invalid-property",
            "The file that 'file' names was not sent along.",
            position=s.properties["file"].position,
            hint="`leat sql` sends it; over REST it is a member of `files`, in base64.",
        )
    comment = s.comment if s.comment is not None else comment
    descriptor_sources.put_descriptor_source(run.env, run.principal, name, data, comment, pre)


def update_secret(run: Run, s: ast.UpdateSecret) -> StatementResult:
    """UPDATE SECRET: what is not named stays."""
    name = single(s.name)
    read = read_secret_properties(s.properties, update=True)
    old = named_secrets.get_secret(run.env, run.principal, name)
    with _at(s, "reference"):
        named_secrets.put_secret(
            run.env,
            run.principal,
            name,
            read.value,
            old.kind,
            {**old.properties, **read.notes},
            read.comment or old.comment,
            Precondition(if_match=old.meta.generation),
            old.outside if read.value is None and read.reference is None else read.reference,
        )
    return StatementResult("update_secret", object={"noun": "secret", "name": name})


def update_registry(run: Run, s: ast.UpdateSchemaRegistry) -> StatementResult:
    """UPDATE SCHEMA_REGISTRY: what is not named stays."""
    name = single(s.name)
    old = schema_registries.get_registry(run.env, run.principal, name)
    read = read_registry_properties(s.properties, old.kind)
    named = old.secret_names.get("password")
    kept: dict[str, SecretValue] = {"password": SecretName(named) if named else None} if old.secrets else {}
    schema_registries.put_registry(
        run.env,
        run.principal,
        name,
        old.kind,
        read.uris or old.uris,
        read.username or old.username,
        kept if read.password is None else {"password": read.password},
        read.comment or old.comment,
        Precondition(if_match=old.meta.generation),
        read.ca_certificate or old.ca_certificate,
    )
    return StatementResult("update_schema_registry", object={"noun": "schema_registry", "name": name})


NOUN_OF: dict[type[ast.CreateRegistered], str] = {
    ast.CreateSecret: "secret",
    ast.CreateSchemaRegistry: "schema_registry",
    ast.CreateDescriptorSource: "descriptor_source",
}
_CREATE: dict[type[ast.CreateRegistered], Callable[[Run, ast.CreateRegistered, str, Precondition], None]] = {
    ast.CreateSecret: _secret,
    ast.CreateSchemaRegistry: _registry,
    ast.CreateDescriptorSource: _descriptors,
}
DELETE: Mapping[str, Callable[[Environment, Principal, str], None]] = {
    "secret": named_secrets.delete_secret,
    "schema_registry": schema_registries.delete_registry,
    "descriptor_source": descriptor_sources.delete_descriptor_source,
}


def _secret_row(x: Secret) -> list[Any]:
    return [x.name, x.kind, x.comment, str(x.version), *meta_cells(x)]


def _registry_row(x: SchemaRegistry) -> list[Any]:
    return [x.name, x.kind, x.uris, x.comment, *meta_cells(x)]


def _source_row(x: DescriptorSource) -> list[Any]:
    return [x.name, str(len(x.messages)), str(x.size), x.sha256, x.comment, *meta_cells(x)]


def listed(env: Environment, who: Principal, s: ast.ListObjects) -> Table:
    """Rows of LIST SECRETS, SCHEMA_REGISTRIES, DESCRIPTOR_SOURCES and DESCRIPTORS.

    Args:
        env: the environment.
        who: who asks.
        s: the statement.
    """
    if s.noun == "secrets":
        secrets = every(env, who, named_secrets.list_secrets)
        return text_columns("name", "type", "description", "version", *META), list(map(_secret_row, secrets))
    if s.noun == "schema_registries":
        found = every(env, who, schema_registries.list_registries)
        return text_columns("name", "type", "uris", "description", *META), list(map(_registry_row, found))
    if s.noun == "descriptors" and s.within is not None:
        sources = [descriptor_sources.get_descriptor_source(env, who, single(s.within))]
    else:
        sources = every(env, who, descriptor_sources.list_descriptor_sources)
    if s.noun == "descriptors":
        rows = [[d.name, m.name, m.file, ", ".join(m.fields)] for d in sources for m in d.messages]
        return text_columns("descriptor_source", "message", "file", "fields"), rows
    columns = text_columns("name", "messages", "size", "sha256", "description", *META)
    return columns, list(map(_source_row, sources))


def described(env: Environment, who: Principal, s: ast.Describe) -> Table:
    """Rows of DESCRIBE SECRET, SCHEMA_REGISTRY and DESCRIPTOR_SOURCE; no value of a secret is among them.

    Args:
        env: the environment.
        who: who asks.
        s: the statement.
    """
    name = single(s.name)
    if s.noun == "secret":
        x = named_secrets.get_secret(env, who, name)
        head = [("name", x.name), ("type", x.kind), ("description", x.comment), ("version", x.version)]
        head += _outside_cells(env, x)
        return pairs([*head, *x.properties.items(), *zip(META, meta_cells(x), strict=True)])
    if s.noun == "schema_registry":
        r = schema_registries.get_registry(env, who, name)
        user = [("username", r.username), ("password_secret", r.secret_names.get("password"))]
        head = [("name", r.name), ("type", r.kind), ("uris", r.uris), *user, ("description", r.comment)]
        return pairs([*head, *zip(META, meta_cells(r), strict=True)])
    d = descriptor_sources.get_descriptor_source(env, who, name)
    return text_columns("message", "file", "fields"), [
        [m.name, m.file, json.dumps(list(m.fields))] for m in d.messages
    ]


def _outside_cells(env: Environment, x: Secret) -> list[tuple[str, Any]]:
    """Where a secret outside the catalog is, and its last look-up by this server."""
    if x.outside is None:
        return []
    look, provider = env.outside.look(x.outside), OutsideReference.read(x.outside).provider
    at = look.at.isoformat(timespec="seconds") if look.at is not None else None
    return [
        ("reference", x.outside),
        ("provider", provider),
        ("resolved_at", at),
        ("resolve_error", look.error),
    ]


@contextmanager
def _at(s: ast.CreateRegistered | ast.UpdateSecret, key: str) -> Iterator[None]:
    """Give the faults of a property its position."""
    try:
        yield
    except LeatstreamError as error:
        found = s.properties.get(key)
        raise error.at(found.position if found is not None else None) from error.__cause__


def check_secret(env: Environment, s: ast.CreateSecret | ast.UpdateSecret, *, update: bool = False) -> None:
    """The WITH list of a secret; a reference is looked up once, as when it is created.

    Args:
        env: the environment.
        s: the statement.
        update: whether what is not named stays.
    """
    read = read_secret_properties(s.properties, update=update)
    if read.reference is not None:
        with _at(s, "reference"):
            named_secrets.check_reference(env, env.caller, single(s.name), read.reference)


def check_create(env: Environment, s: ast.CreateRegistered) -> None:
    """What the dry run can find out about a CREATE: faults of its WITH list, and of a reference."""
    if isinstance(s, ast.CreateSecret):
        check_secret(env, s)
    elif isinstance(s, ast.CreateSchemaRegistry):
        read = read_registry_properties(s.properties)
        schema_registries.check_registry(
            read.kind or "",
            read.uris or "",
            read.username,
            has_password=read.password is not None,
            ca_certificate=read.ca_certificate,
        )
        hosts = hosts_in("uris", read.uris or "")
        refuse_hosts(env, "schema_registry", single(s.name), hosts, "#")
    else:
        read_descriptor_file(s.properties)
