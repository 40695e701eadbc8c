"""Exported objects as a SQL script that makes them on an empty server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from leatstream.model.access import ORGANIZATION, AccountKind, Grant, plural
from leatstream.model.functions import JAVA
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import DesiredState, Query
from leatstream.services.export.ddl import Word, comment, create_relation, pairs
from leatstream.services.export.objects import Exported
from leatstream.services.nouns.databases import PUBLIC
from leatstream.services.nouns.external_ids import without_generated
from leatstream.services.nouns.schemas import schema_key
from leatstream.services.planning.query_properties import NAME, query_name
from leatstream.services.queries.definition import parse_continuous
from leatstream.sql.generation.statements import generate
from leatstream.sql.generation.words import name as sql_name
from leatstream.sql.generation.words import string
from leatstream.sql.registered_properties import password_key, username_key
from leatstream.sql.statements import Value
from leatstream.sql.store_properties import secret_properties, unused_secrets, written_store

SCRIPT = "catalog.sql"


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """One file of an export.

    Attributes:
        path: relative, with slashes.
        content: its text; of a binary file the base64.
        binary: whether ``content`` is base64.
    """

    path: str
    content: str
    binary: bool = False


@dataclass(slots=True)
class Export:
    """What an export writes.

    Attributes:
        files: the main one first.
        variables: names of the values that nobody can read, to what each is.
        notes: what the files cannot say, a sentence each.
    """

    files: list[ExportedFile] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def variable(self, *parts: str, what: str) -> str:
        """Note a secret value; the name of its variable.

        Args:
            parts: words of the name.
            what: the value is, for people.
        """
        wanted = identifier("_".join(parts))
        name, number = wanted, 2
        while self.variables.get(name, what) != what:
            name, number = f"{wanted}_{number}", number + 1
        self.variables[name] = what
        return name


def identifier(words: str) -> str:
    """Words as a name of lower-case letters, digits and underscores."""
    found = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_") or "x"
    return f"_{found}" if found[0].isdigit() else found


def file_path(folder: str, source: str, file: str) -> str:
    """Where the file of a source is written.

    Args:
        folder: that holds the files of such sources.
        source: name of the source.
        file: its own name.
    """
    return f"{folder}/{identifier(source)}/{re.sub(r'[^A-Za-z0-9._-]', '_', file)}"


def sql_script(objects: Sequence[Exported]) -> Export:
    """The script and the files that it sends along."""
    made = Export()
    writer = _Writer(made)
    statements = [text for one in objects for text in writer.statements(one)]
    head = [
        "-- Exported by leatstream. Run it on an empty server: leat sql -f catalog.sql",
        # Without ${}: a value of several lines, put in here too, would not stay a comment.
        *(f"-- Replace the variable {name} by {what}." for name, what in made.variables.items()),
        *(f"-- {note}" for note in made.notes),
    ]
    body = "\n".join(head) + "\n\n" + "".join(f"{text}\n" for text in statements)
    made.files.insert(0, ExportedFile(SCRIPT, body))
    return made


class _Writer:
    """Writes statements; knows which database, schema and store are in use."""

    def __init__(self, made: Export) -> None:
        self._made = made
        self._used: tuple[str | None, str | None, str | None] = (None, None, None)
        self._kinds: Mapping[str, Callable[[Exported], Iterator[str]]] = {
            "secret": self._secret,
            "schema_registry": self._registry,
            "descriptor_source": self._descriptors,
            "store": self._store,
            "database": self._database,
            "schema": self._schema,
            "function_source": self._source,
            "function": self._function,
            "relation": lambda one: iter([create_relation(one.item)]),
            "query": self._query,
            "application": self._application,
            "role": self._role,
            AccountKind.USER: self._account,
            AccountKind.SERVICE_ACCOUNT: self._account,
        }

    def statements(self, one: Exported) -> Iterator[str]:
        """The statements that make an object."""
        return self._kinds[one.ref.kind](one)

    def _secret_value(self, *parts: str, what: str) -> str:
        return f"${{{self._made.variable(*parts, what=what)}}}"

    def _secret(self, one: Exported) -> Iterator[str]:
        item = one.item
        if item.outside is not None:
            held = {"reference": item.outside}
        else:
            what = f"the value of secret {one.ref.name}"
            held = {"secret_string": self._secret_value("secret", item.name, "value", what=what)}
        given = {"type": Word(item.kind), **held, **item.properties}
        yield f"CREATE SECRET {one.ref.name}{comment(item.comment)} WITH ({pairs(given)});"

    def _registry(self, one: Exported) -> Iterator[str]:
        item = one.item
        what = f"the password of schema registry {one.ref.name}"
        password: str | None = None
        if "password" in item.secret_names:
            password = _name(item.secret_names["password"])
        elif "password" in item.secrets:
            password = self._secret_value("schema_registry", item.name, "password", what=what)
        given = {
            "type": Word(item.kind.upper()),
            "uris": item.uris,
            username_key(item.kind): item.username,
            password_key(item.kind): password,
            "tls.ca_cert_file": item.ca_certificate,
        }
        yield f"CREATE SCHEMA_REGISTRY {one.ref.name}{comment(item.comment)} WITH ({pairs(given)});"

    def _descriptors(self, one: Exported) -> Iterator[str]:
        path = file_path("descriptors", one.item.name, "messages.desc")
        self._made.files.append(ExportedFile(path, one.item.descriptor_set, binary=True))
        given = pairs({"file": f"@{path}"})
        yield f"CREATE DESCRIPTOR_SOURCE {one.ref.name}{comment(one.item.comment)} WITH ({given});"

    def _store(self, one: Exported) -> Iterator[str]:
        item = one.item
        given = written_store(item.kind, without_generated(item))
        given["type"] = Word(given["type"].upper())
        unused = unused_secrets(item.kind, item.config, {*item.secrets, *item.secret_names})
        for path, key in secret_properties(item.kind).items():
            if path in unused:
                self._made.notes.append(
                    f"SQL cannot keep the {path} of store {one.ref.name}, which is not used."
                )
            elif path in item.secret_names:
                given[key] = _name(item.secret_names[path])
            elif path in item.secrets:
                what = f"the {path} of store {one.ref.name}"
                given[key] = self._secret_value("store", item.name, path, what=what)
        if item.schema_registry is not None:
            given["schema_registry.name"] = _name(item.schema_registry)
        yield f"CREATE STORE {one.ref.name}{comment(item.comment)} WITH ({pairs(given)});"

    def _database(self, one: Exported) -> Iterator[str]:
        yield f"CREATE DATABASE {one.ref.name}{comment(one.item.comment)};"

    def _schema(self, one: Exported) -> Iterator[str]:
        # The database has brought its schema public.
        again = " OR REPLACE" if one.item.name == PUBLIC else ""
        yield f"CREATE{again} SCHEMA {one.ref.name}{comment(one.item.comment)};"

    def _source(self, one: Exported) -> Iterator[str]:
        item = one.item
        path = file_path("functions", item.name, item.file)
        if path.rsplit("/", 1)[-1] != item.file:
            self._made.notes.append(f"The file {item.file!r} of {one.ref.name} has another name here.")
        self._made.files.append(ExportedFile(path, item.content, binary=item.language == JAVA))
        given = pairs({"file": f"@{path}"})
        yield f"CREATE FUNCTION_SOURCE {one.ref.name}{comment(item.comment)} WITH ({given});"

    def _function(self, one: Exported) -> Iterator[str]:
        item = one.item
        arguments = ", ".join(f"{sql_name(a.name)} {a.type}" for a in item.arguments)
        given = {
            "source.name": _name(item.source),
            "handler": item.handler,
            "timeout.seconds": item.timeout_seconds,
        }
        yield (
            f"CREATE FUNCTION {one.ref.name}({arguments}) RETURNS {item.returns} "
            f"LANGUAGE {item.language.upper()}{comment(item.comment)} WITH ({pairs(given)});"
        )

    def _query(self, one: Exported) -> Iterator[str]:
        query: Query = one.item
        sink = one.sinks.get(query.name)
        store = query.context.get("store") or (sink.store if sink is not None else None)
        yield from self._use(query.context, query.sink, store)
        yield _query_text(query, self._made.notes)
        for index in sink.indexes if sink is not None else ():
            yield f"CREATE INDEX {sql_name(index.name)} ON {query.sink} ({_names(index.columns)});"
        if query.desired_state is DesiredState.STOPPED:
            yield f"TERMINATE QUERY {one.ref.name};"
        if query.delete_sink_entity:
            self._made.notes.append(f"SQL cannot say that dropping query {one.ref.name} deletes its entity.")

    def _application(self, one: Exported) -> Iterator[str]:
        app = one.item.application
        stores = [sink.store for sink in one.sinks.values() if sink.store]
        store = app.context.get("store") or (stores[0] if stores else None)
        yield from self._use(app.context, one.places[0] if one.places else None, store)
        yield f"{app.sql.strip().rstrip(';').rstrip()};"
        if app.desired_state is DesiredState.STOPPED:
            yield f"TERMINATE APPLICATION {one.ref.name};"
        if app.comment is not None:
            self._made.notes.append(f"SQL has no comment for application {one.ref.name}.")

    def _use(self, context: Mapping[str, str | None], place: str | None, store: str | None) -> Iterator[str]:
        """What unqualified names mean, where that changes; at least the sink's place."""
        fqn = Fqn.parse(place) if place is not None else None
        database, schema = context.get("database"), context.get("schema")
        if database is None and fqn is not None:
            database, schema = fqn.database, fqn.schema
        schema = schema or PUBLIC
        if database is not None and (database, schema) != self._used[:2]:
            plain = schema == PUBLIC
            yield (
                f"USE DATABASE {quote(database)};" if plain else f"USE SCHEMA {schema_key(database, schema)};"
            )
        if store and store != self._used[2]:
            yield f"USE STORE {quote(store)};"
        place_used = (database, schema) if database is not None else self._used[:2]
        self._used = (*place_used, store or self._used[2])

    def _role(self, one: Exported) -> Iterator[str]:
        yield f"CREATE ROLE {one.ref.name}{comment(one.item.comment)};"
        for role in one.item.inherits:
            yield f"GRANT ROLE {quote(role)} TO ROLE {one.ref.name};"
        for grant in one.item.grants:
            option = " WITH GRANT OPTION" if grant.grant_option else ""
            yield f"GRANT {grant.privilege.upper()} ON {_target(grant)} TO ROLE {one.ref.name}{option};"

    def _account(self, one: Exported) -> Iterator[str]:
        item = one.item
        given = {
            "roles": ", ".join(item.roles) or None,
            "default.role": item.default_role,
            "disabled": item.disabled or None,
        }
        shown = f" WITH ({pairs(given)})" if any(given.values()) else ""
        # A new server has an account already: that of the user who runs the script.
        yield f"CREATE {one.ref.kind.upper()} IF NOT EXISTS {one.ref.name}{comment(item.comment)}{shown};"


def _name(name: str) -> Word:
    """A name as a WITH value."""
    return Word(f'"{name.replace(chr(34), chr(34) * 2)}"')


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(sql_name, columns))


def _target(grant: Grant) -> str:
    on = grant.on
    if on.kind == ORGANIZATION:
        return "ORGANIZATION"
    if on.name is None:
        where = "" if on.within == ORGANIZATION else f" IN {str(on.within).upper()} {on.container}"
        return f"ALL {plural(on.kind).upper()}{where}"
    entities = f" ENTITIES {string(on.entities)}" if on.entities is not None else ""
    return f"{on.kind.upper()} {on.name}{entities}"


def _query_text(query: Query, notes: list[str]) -> str:
    """The query's own text, with its name and properties where the text does not say them."""
    statement = parse_continuous(query.sql)
    more = {key.strip().lower(): str(value) for key, value in query.properties.items()}
    if query_name(statement.query_properties) is None:
        sink = Fqn.parse(query.sink).name
        if query.name != (sink if query.kind.makes_sink else f"insert_into_{sink}"):
            more[NAME] = query.name
    more = {key: value for key, value in more.items() if key not in statement.query_properties}
    if query.comment is not None:
        notes.append(f"SQL has no comment for query {quote(query.name)}.")
    if not more:
        return f"{statement.text};"
    if not statement.query_properties:
        return f"{statement.text}\nQUERY WITH ({pairs(more)});"
    place = statement.position
    added = {key: Value(value, "string", place) for key, value in more.items()}
    return f"{generate(replace(statement, query_properties={**statement.query_properties, **added}))};"
