"""An Iceberg REST catalog for tests: the protocol's routes over the metadata code of pyiceberg itself.

What it checks is the protocol, logins and commits on a state that has changed. That its tables can be read by
others than pyiceberg it cannot say.
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pyiceberg import exceptions
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

CLIENT, SECRET, SCOPE, TOKEN, WAREHOUSE = "leat", "leat-secret", "PRINCIPAL_ROLE:ALL", "ready-token", "main"
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


@dataclass
class IcebergServer:
    """A running catalog.

    Attributes:
        files: pyiceberg's settings for the store of the files.
        vends: whether it hands out the credentials of the files.
        lost: how many answers to commits are lost from now on: the commit is made, and the answer is 502.
        before_commit: called before each commit, to let another one be faster.
    """

    address: str
    files: Mapping[str, str]
    catalog: SqlCatalog
    vends: bool = True
    lost: int = 0
    before_commit: Callable[[], None] | None = None
    tokens: dict[str, float] = field(default_factory=dict)
    commits: int = 0

    def config(self, **other: Any) -> dict[str, Any]:
        """Settings of a store, without its secret."""
        known = {"uri": self.address, "warehouse": WAREHOUSE, "client_id": CLIENT, "scope": SCOPE}
        return known | other


@contextmanager
def iceberg_server(location: str, files: Mapping[str, str]) -> Iterator[IcebergServer]:
    """A catalog on a free port.

    Args:
        location: where its tables lie, such as ``s3://lake/warehouse``.
        files: pyiceberg's settings for the store of the files.
    """
    folder = tempfile.mkdtemp(prefix="leat-iceberg-")
    catalog = SqlCatalog("tests", warehouse=location, uri=f"sqlite:///{folder}/catalog.db", **files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    found = IcebergServer(f"http://127.0.0.1:{server.server_address[1]}", dict(files), catalog)
    server.daemon_threads = True
    setattr(server, "state", found)  # noqa: B010 - the handler looks for it there
    setattr(server, "alone", threading.RLock())  # noqa: B010
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    serving.start()
    try:
        yield found
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
        catalog.close()
        shutil.rmtree(folder)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_DELETE = do_HEAD = do_GET

    @property
    def _state(self) -> IcebergServer:
        found: IcebergServer = getattr(self.server, "state")  # noqa: B009
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
            status, body = _STATUS.get(name, 500), _fault(_STATUS.get(name, 500), kind, str(error))
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _route(self, parts: list[str], asked: Mapping[str, str], raw: bytes) -> tuple[int, Any]:
        if parts == ["oauth", "tokens"]:
            return self._login(raw)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token != TOKEN and self._state.tokens.get(token, 0) < time.monotonic():
            return 401, _fault(401, "NotAuthorizedException", "The token is not valid.")
        if parts == ["config"]:
            if asked.get("warehouse", WAREHOUSE) != WAREHOUSE:
                text = f"Warehouse {asked['warehouse']} does not exist"
                return 404, _fault(404, "NoSuchWarehouseException", text)
            return 200, {"defaults": {}, "overrides": {"prefix": WAREHOUSE}}
        _, noun, *rest = parts
        body = json.loads(raw) if raw else {}
        space = tuple(rest[0].split(_BETWEEN)) if rest else ()
        if noun != "namespaces":
            return 404, _fault(404, "NotFoundException", noun)
        if len(rest) < 2:
            return self._namespaces(space, asked, body)
        if len(rest) == 2:
            return self._tables(space, body)
        return self._table((*space, rest[2]), asked, body)

    def _login(self, raw: bytes) -> tuple[int, Any]:
        form = dict(urllib.parse.parse_qsl(raw.decode()))
        login = self.headers.get("Authorization") or ""
        if login.startswith("Basic "):
            pair = base64.b64decode(login.removeprefix("Basic ")).decode()
            form["client_id"], _, form["client_secret"] = pair.partition(":")
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client", "error_description": "Client credentials are not valid."}
        if form.get("scope") != SCOPE:
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

    def _namespaces(self, space: tuple[str, ...], asked: Mapping[str, str], body: Any) -> tuple[int, Any]:
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

    def _tables(self, space: tuple[str, ...], body: Any) -> tuple[int, Any]:
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

    def _table(self, name: tuple[str, ...], asked: Mapping[str, str], body: Any) -> tuple[int, Any]:
        state = self._state
        if self.command == "DELETE":
            purge = asked.get("purgeRequested", "false").lower() == "true"
            (state.catalog.purge_table if purge else state.catalog.drop_table)(name)
            return 204, None
        if self.command == "POST":
            return self._commit(name, body)
        return (200, self._loaded(state.catalog.load_table(name)))

    def _commit(self, name: tuple[str, ...], body: Any) -> tuple[int, Any]:
        state = self._state
        if state.before_commit is not None:
            state.before_commit()
        with getattr(self.server, "alone"):  # noqa: B009
            identifier = {"namespace": list(name[:-1]), "name": name[-1]}
            asked = CommitTableRequest.model_validate({"identifier": identifier} | body)
            table = state.catalog.load_table(name)
            made = state.catalog.commit_table(table, asked.requirements, asked.updates)
            state.commits += 1
            if state.lost:
                state.lost -= 1
                return 502, _fault(502, "BadGateway", "The answer was lost.")
        metadata = json.loads(made.metadata.model_dump_json())
        return 200, {"metadata-location": made.metadata_location, "metadata": metadata}

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


def _fault(status: int, kind: str, text: str) -> dict[str, Any]:
    return {"error": {"message": text, "type": kind, "code": status}}
