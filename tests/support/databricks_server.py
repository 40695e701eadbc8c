"""A facade of a Databricks workspace: what the product asks of Unity Catalog and of a warehouse, over real Delta logs.

It is no Databricks. Statements about external tables it knows by heart; all others are run by real Spark with Delta
Lake (``databricks_managed``). Columns of a table are read from its Delta log, as a workspace would.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from aws_server import REGION, aws_server, bucket
from databricks_managed import VOLUME, ManagedTables
from deltalake import DeltaTable

TOKEN = "dapi-secret-token"
WAREHOUSE = "abc123"
BUCKET = "delta-lake"
_NAME = r"`(\w+)`\.`(\w+)`"
_SCHEMA = re.compile(rf"CREATE SCHEMA IF NOT EXISTS {_NAME}\Z")
_TABLE = re.compile(rf"CREATE TABLE {_NAME}\.`([^`]+)` USING DELTA LOCATION '(s3://[^']+)'\Z")
_KEY = re.compile(rf"ALTER TABLE {_NAME}\.`([^`]+)` ADD CONSTRAINT `[^`]+` PRIMARY KEY \((.+)\)\Z")
_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


@dataclass
class DatabricksServer:
    """A running facade, and the bucket.

    Attributes:
        tables: full name to what the catalog has of it.
        statements: what the warehouse was sent.
        slow: how often a statement is still running when it is asked for.
        lost: how many statements are run, but their answer is lost with the connection.
        busy: how many requests are answered with 429.
        answers: statement to its state and result.
    """

    managed: ManagedTables
    url: str = ""
    aws: str = ""
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    schemas: set[str] = field(default_factory=lambda: {"default", "information_schema"})
    statements: list[str] = field(default_factory=list)
    slow: int = 0
    lost: int = 0
    busy: int = 0
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def config(self, **more: Any) -> dict[str, Any]:
        """Settings of a store over it; secrets are in ``secrets``."""
        files = {"bucket": BUCKET, "region": REGION, "endpoint_url": self.aws, "access_key_id": "AKIAEXAMPLE"}
        return {"host": self.url, "warehouse_id": WAREHOUSE, "s3": files} | more

    def managed_config(self, **more: Any) -> dict[str, Any]:
        """Settings of a store whose new tables are managed; its secret is the token."""
        return {"host": self.url, "warehouse_id": WAREHOUSE, "volume": VOLUME} | more

    @property
    def secrets(self) -> dict[str, str]:
        """Secrets of the store."""
        return {"token": TOKEN, "s3.secret_access_key": "a-secret"}

    def delta(self, entity: str) -> DeltaTable:
        """The table's files, past leatstream."""
        name = entity if "." in entity else f"default.{entity}"
        found = self.tables[f"main.{name}"]
        if found["table_type"] == "MANAGED":
            return DeltaTable(found["storage_location"])
        options = {
            "AWS_ENDPOINT_URL": self.aws,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "a-secret",
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }
        return DeltaTable(found["storage_location"], storage_options=options)

    def execute(self, statement: str) -> dict[str, Any]:
        """What a warehouse makes of a statement: columns and rows, or ValueError."""
        self.statements.append(statement)
        if found := _SCHEMA.match(statement):
            self.schemas.add(found[2])
        elif found := _TABLE.match(statement):
            name = f"{found[1]}.{found[2]}.{found[3]}"
            if name in self.tables:
                raise ValueError(f"[TABLE_OR_VIEW_ALREADY_EXISTS] {name}")
            self.register(name, found[4])
        elif found := _KEY.match(statement):
            keys = re.findall(r"`([^`]+)`", found[4])
            self.tables[f"{found[1]}.{found[2]}.{found[3]}"]["table_constraints"] = _constraints(keys)
        elif statement.split(" ")[0] in ("CREATE", "MERGE", "COPY", "ALTER", "SELECT", "INSERT"):
            return self.managed.run(statement, self._register_managed)
        else:
            raise ValueError(f"[PARSE_SYNTAX_ERROR] Syntax error at or near {statement[:20]}")
        return {"columns": [], "rows": []}

    def _register_managed(self, name: str, location: str, keys: list[str]) -> None:
        self.register(name, location, "MANAGED")
        self.tables[name]["table_constraints"] = _constraints(keys)

    def register(self, name: str, location: str, kind: str = "EXTERNAL") -> None:
        """Put a table into the catalog."""
        catalog, schema, table = name.split(".")
        self.tables[name] = {
            "full_name": name,
            "catalog_name": catalog,
            "schema_name": schema,
            "name": table,
            "table_type": kind,
            "data_source_format": "DELTA",
            "storage_location": location,
            "table_id": str(uuid.uuid4()),
        }

    def columns(self, name: str) -> list[dict[str, Any]]:
        """The columns of a table, from its Delta log."""
        if "databricks-own" in self.tables[name]["storage_location"]:
            return []
        fields = json.loads(self.delta(name.removeprefix("main.")).schema().to_json())["fields"]
        return [{"name": f["name"], "type_text": _text(f["type"]), "nullable": f["nullable"]} for f in fields]


def _constraints(keys: list[str]) -> list[dict[str, Any]]:
    return [{"primary_key_constraint": {"name": "pk", "child_columns": keys}}] if keys else []


def _text(kind: Any) -> str:
    if isinstance(kind, str):
        return _TYPES.get(kind, kind)
    if kind["type"] == "array":
        return f"array<{_text(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_text(kind['keyType'])},{_text(kind['valueType'])}>"
    members = ",".join(f"{one['name']}:{_text(one['type'])}" for one in kind["fields"])
    return f"struct<{members}>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: DatabricksServer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._route("GET")

    def do_POST(self) -> None:
        self._route("POST")

    def do_PUT(self) -> None:
        self._route("PUT")

    def do_DELETE(self) -> None:
        self._route("DELETE")

    def _reply(self, status: int, body: Any, **headers: str) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def _route(self, method: str) -> None:
        state, parts = self.server_state, urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/.well-known/"):
            return self._reply(200, {})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._reply(403, {"error_code": "PERMISSION_DENIED", "message": "Invalid access token."})
        if state.busy > 0:
            state.busy -= 1
            refusal = {"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "Too many requests."}
            return self._reply(429, refusal, Retry_After="0")
        last = parts.path.rsplit("/", 1)[1]
        if parts.path.startswith("/api/2.0/fs/"):
            path = unquote(parts.path.removeprefix("/api/2.0/fs/"))
            return self._reply(*state.managed.answer(method, path, body))
        if parts.path.startswith("/api/2.0/sql/warehouses/"):
            if last != WAREHOUSE:
                return self._reply(
                    404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"No warehouse {last}."}
                )
            return self._reply(200, {"id": last, "name": "small", "state": "STOPPED"})
        if parts.path == "/api/2.0/sql/statements" and method == "POST":
            return self._execute(json.loads(body)["statement"])
        if parts.path.endswith("/cancel") and method == "POST":
            state.answers[parts.path.split("/")[-2]]["state"] = "CANCELED"
            return self._reply(200, {})
        if parts.path.startswith("/api/2.0/sql/statements/"):
            return self._running(last)
        return self._catalog(method, parts.path, query)

    def _catalog(self, method: str, path: str, query: dict[str, str]) -> None:
        state, catalog, last = self.server_state, "/api/2.1/unity-catalog/", path.rsplit("/", 1)[1]
        if path == f"{catalog}schemas":
            return self._reply(200, {"schemas": [{"name": name} for name in sorted(state.schemas)]})
        if path == f"{catalog}tables":
            mine = [t for t in state.tables.values() if t["schema_name"] == query["schema_name"]]
            return self._reply(200, {"tables": mine})
        if not path.startswith(f"{catalog}tables/"):
            return self._reply(404, {"error_code": "ENDPOINT_NOT_FOUND", "message": path})
        if last not in state.tables:
            return self._reply(404, {"error_code": "TABLE_DOES_NOT_EXIST", "message": f"No table {last}."})
        if method == "DELETE":
            dropped = state.tables.pop(last)
            if dropped["table_type"] == "MANAGED" and "databricks-own" not in dropped["storage_location"]:
                state.managed.drop(dropped["schema_name"], dropped["name"])
            return self._reply(200, {})
        return self._reply(200, state.tables[last] | {"columns": state.columns(last)})

    def _execute(self, statement: str) -> None:
        state, number = self.server_state, str(uuid.uuid4())
        state.answers[number] = {"state": "PENDING", "looks": state.slow}
        running = threading.Thread(target=_run, args=(state, number, statement), daemon=True)
        running.start()
        if state.lost > 0:
            state.lost -= 1
            running.join(60)
            self.close_connection = True
            return None
        return self._running(number)

    def _running(self, number: str) -> None:
        found = self.server_state.answers.get(number)
        if found is None:
            return self._reply(404, {"error_code": "NOT_FOUND", "message": f"No statement {number}."})
        shown = {"statement_id": number, "status": {"state": "RUNNING"}}
        found["looks"] -= 1
        if found["looks"] < 0 and found["state"] != "PENDING":
            shown |= {key: value for key, value in found.items() if key not in ("state", "looks")}
            shown["status"] = {"state": found["state"]} | found.get("status", {})
        return self._reply(200, shown)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: clients come and go."""


def _run(state: DatabricksServer, number: str, statement: str) -> None:
    """Run a statement, and keep its answer."""
    answer = state.answers[number]
    try:
        found = state.execute(statement)
    except ValueError as error:
        refused = {"error": {"error_code": "BAD_REQUEST", "message": str(error)}}
        answer |= {"state": "FAILED", "status": refused}
        return
    columns = [{"name": name, "position": i} for i, name in enumerate(found["columns"])]
    chunk = {"chunk_index": 0, "row_offset": 0, "row_count": len(found["rows"]), "data_array": found["rows"]}
    answer |= {
        "manifest": {"schema": {"columns": columns}, "total_chunk_count": 1},
        "result": chunk,
        "state": "SUCCEEDED",
    }


@contextlib.contextmanager
def databricks_server() -> Iterator[DatabricksServer]:
    """Start a facade and an S3; Spark with Delta Lake begins at the first statement about a managed table."""
    with aws_server() as aws, tempfile.TemporaryDirectory(prefix="leat-databricks-") as folder:
        bucket(aws, BUCKET)
        state = DatabricksServer(ManagedTables(Path(folder)), aws=aws)
        handler = type("Handler", (_Handler,), {"server_state": state})
        server = _Server(("127.0.0.1", 0), handler)
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        try:
            yield state
        finally:
            server.shutdown()
            serving.join()
            server.server_close()
            state.managed.close()
