"""An Iceberg REST catalog: the protocol's routes over the metadata code of pyiceberg itself.

It logs clients in, checks commits on the state that they expect, and hands out access to the files. It is for
one machine: its catalog is a file of SQLite, and one commit is made after the other.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pyiceberg import exceptions
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from leatstream.dev.ports import LOOPBACK

_BETWEEN = "\x1f"
_LIFE = 3600.0  # seconds of a token
_STATUS = {
    "NoSuchTableError": 404,
    "NoSuchNamespaceError": 404,
    "TableAlreadyExistsError": 409,
    "NamespaceAlreadyExistsError": 409,
    "NamespaceNotEmptyError": 409,
    "CommitFailedException": 409,
    "ValidationError": 400,
    "ValueError": 400,
}
# Without a list clients expect the protocol's usual endpoints, with commits of several tables at once.
_SPACES = "/v1/{prefix}/namespaces"
_SPACE = f"{_SPACES}/{{namespace}}"
_ENDPOINTS = (
    *(f"{method} {_SPACES}" for method in ("GET", "POST")),
    *(f"{method} {_SPACE}" for method in ("GET", "HEAD", "DELETE")),
    *(f"{method} {_SPACE}/tables" for method in ("GET", "POST")),
    *(f"{method} {_SPACE}/tables/{{table}}" for method in ("GET", "HEAD", "POST", "DELETE")),
)
Answer = tuple[int, Any]
"""Status, and what the body says as JSON; None = no body."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who may come in.

    Attributes:
        token: a ready one, besides those that the client gets.
    """

    client: str
    scope: str
    warehouse: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


class RestCatalogServer:
    """A server over a catalog; ``serve`` answers until ``stop``.

    Attributes:
        catalog: what it shows.
        files: pyiceberg's settings for the store of the files.
        vends: whether it hands them out.
    """

    def __init__(self, catalog: SqlCatalog, login: Login, files: Mapping[str, str], port: int = 0) -> None:
        """Listen.

        Args:
            catalog: what it shows.
            login: who may come in.
            files: pyiceberg's settings for the store of the files.
            port: 0 = any free one.
        """
        self.catalog, self.login, self.files, self.vends = catalog, login, files, True
        self.tokens: dict[str, float] = {}
        self.alone = threading.RLock()
        self._server = ThreadingHTTPServer((LOOPBACK, port), _Handler)
        self._server.daemon_threads = True
        setattr(self._server, "state", self)  # noqa: B010 - the handler looks for it there
        self.address = f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def serve(self) -> None:
        """Answer until ``stop``."""
        self._server.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        """End ``serve``, in another thread than its own."""
        self._server.shutdown()
        self._server.server_close()

    def commit(self, name: tuple[str, ...], body: Any) -> Answer:
        """Commit to a table, if it is as the client expects.

        Args:
            name: of the table, with its namespace.
            body: of the request.
        """
        with self.alone:
            identifier = {"namespace": list(name[:-1]), "name": name[-1]}
            asked = CommitTableRequest.model_validate({"identifier": identifier} | body)
            made = self.catalog.commit_table(self.catalog.load_table(name), asked.requirements, asked.updates)
        metadata = json.loads(made.metadata.model_dump_json())
        return 200, {"metadata-location": made.metadata_location, "metadata": metadata}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """Any request; the method decides later."""
        self._answer()

    do_POST = do_DELETE = do_HEAD = do_GET

    @property
    def _state(self) -> RestCatalogServer:
        found: RestCatalogServer = getattr(self.server, "state")  # noqa: B009
        return found

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urllib.parse.urlsplit(self.path)
        parts = [urllib.parse.unquote(part) for part in address.path.strip("/").split("/")[1:]]
        asked = dict(urllib.parse.parse_qsl(address.query))
        try:
            status, body = self._route(parts, asked, raw)
        except Exception as error:
            name = type(error).__name__
            kind = name.replace("Error", "Exception")
            status, body = _STATUS.get(name, 500), fault(_STATUS.get(name, 500), kind, str(error))
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _route(self, parts: list[str], asked: Mapping[str, str], raw: bytes) -> Answer:
        if parts == ["oauth", "tokens"]:
            return self._login(raw)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token != self._state.login.token and self._state.tokens.get(token, 0) < time.monotonic():
            return 401, fault(401, "NotAuthorizedException", "The token is not valid.")
        warehouse = self._state.login.warehouse
        if parts == ["config"]:
            if asked.get("warehouse", warehouse) != warehouse:
                text = f"Warehouse {asked['warehouse']} does not exist"
                return 404, fault(404, "NoSuchWarehouseException", text)
            found = {"defaults": {}, "overrides": {"prefix": warehouse}, "endpoints": list(_ENDPOINTS)}
            return 200, found
        _, noun, *rest = parts
        body = json.loads(raw) if raw else {}
        space = tuple(rest[0].split(_BETWEEN)) if rest else ()
        if noun != "namespaces":
            return 404, fault(404, "NotFoundException", noun)
        if len(rest) < 2:
            return self._namespaces(space, asked, body)
        if len(rest) == 2:
            return self._tables(space, body)
        return self._table((*space, rest[2]), asked, body)

    def _login(self, raw: bytes) -> Answer:
        known = self._state.login
        form = dict(urllib.parse.parse_qsl(raw.decode()))
        login = self.headers.get("Authorization") or ""
        if login.startswith("Basic "):
            pair = base64.b64decode(login.removeprefix("Basic ")).decode()
            form["client_id"], _, form["client_secret"] = pair.partition(":")
        if (form.get("client_id"), form.get("client_secret")) != (known.client, known.secret):
            return 401, {"error": "invalid_client", "error_description": "Client credentials are not valid."}
        if form.get("scope") != known.scope:
            return 400, {"error": "invalid_scope", "error_description": "There is no such scope."}
        token = uuid.uuid4().hex
        self._state.tokens[token] = time.monotonic() + _LIFE
        kind = "urn:ietf:params:oauth:token-type:access_token"
        return 200, {
            "access_token": token,
            "token_type": "bearer",
            "expires_in": int(_LIFE),
            "issued_token_type": kind,
        }

    def _namespaces(self, space: tuple[str, ...], asked: Mapping[str, str], body: Any) -> Answer:
        catalog = self._state.catalog
        if not space and self.command == "GET":
            above = tuple(asked["parent"].split(_BETWEEN)) if "parent" in asked else ()
            return 200, {"namespaces": [list(one) for one in catalog.list_namespaces(above)]}
        if not space:
            above = tuple(body["namespace"][:-1])
            if above and not catalog.namespace_exists(above):
                raise exceptions.NoSuchNamespaceError(f"Namespace {above} does not exist")
            catalog.create_namespace(tuple(body["namespace"]), body.get("properties", {}))
            return 200, {"namespace": body["namespace"], "properties": {}}
        if self.command == "DELETE":
            catalog.drop_namespace(space)
            return 204, None
        found = dict(catalog.load_namespace_properties(space))
        return (
            (204, None) if self.command == "HEAD" else (200, {"namespace": list(space), "properties": found})
        )

    def _tables(self, space: tuple[str, ...], body: Any) -> Answer:
        catalog = self._state.catalog
        catalog.load_namespace_properties(space)
        if self.command == "GET":
            found = [{"namespace": list(space), "name": one[-1]} for one in catalog.list_tables(space)]
            return 200, {"identifiers": found}
        asked = CreateTableRequest.model_validate(
            {"location": None, "partition-spec": None, "write-order": None} | body
        )
        made = catalog.create_table(
            (*space, asked.name),
            asked.table_schema,
            asked.location,
            asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            asked.write_order or UNSORTED_SORT_ORDER,
            asked.properties,
        )
        return 200, self._loaded(made)

    def _table(self, name: tuple[str, ...], asked: Mapping[str, str], body: Any) -> Answer:
        state = self._state
        if self.command == "DELETE":
            purge = asked.get("purgeRequested", "false").lower() == "true"
            (state.catalog.purge_table if purge else state.catalog.drop_table)(name)
            return 204, None
        if self.command == "POST":
            return state.commit(name, body)
        return (200, self._loaded(state.catalog.load_table(name)))

    def _loaded(self, table: Table) -> dict[str, Any]:
        body: dict[str, Any] = {
            "metadata-location": table.metadata_location,
            "metadata": json.loads(table.metadata.model_dump_json()),
            "config": {},
        }
        wanted = self.headers.get("X-Iceberg-Access-Delegation") or ""
        if self._state.vends and "vended-credentials" in wanted:
            files = dict(self._state.files)
            body |= {
                "config": files,
                "storage-credentials": [{"prefix": table.location(), "config": files}],
            }
        return body


def fault(status: int, kind: str, text: str) -> dict[str, Any]:
    """The body of an error.

    Args:
        status: of HTTP.
        kind: its name in the protocol.
        text: for people.
    """
    return {"error": {"message": text, "type": kind, "code": status}}
