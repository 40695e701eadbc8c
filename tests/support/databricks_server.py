"""A facade of a Databricks workspace: what the product asks of Unity Catalog and of a warehouse, over real Delta logs.

It is no Databricks, and runs no SQL: it knows the few statements that the product sends. Columns of a table are read
from the Delta log at its location, as a workspace would.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aws_server import REGION, aws_server, bucket
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
    """

    url: str = ""
    aws: str = ""
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    schemas: set[str] = field(default_factory=lambda: {"default", "information_schema"})
    statements: list[str] = field(default_factory=list)
    slow: int = 0

    def config(self, **more: Any) -> dict[str, Any]:
        """Settings of a store over it; secrets are in ``secrets``."""
        files = {"bucket": BUCKET, "region": REGION, "endpoint_url": self.aws, "access_key_id": "AKIAEXAMPLE"}
        return {"host": self.url, "warehouse_id": WAREHOUSE, "s3": files} | more

    @property
    def secrets(self) -> dict[str, str]:
        """Secrets of the store."""
        return {"token": TOKEN, "s3.secret_access_key": "a-secret"}

    def delta(self, entity: str) -> DeltaTable:
        """The table's files, past leatstream."""
        name = entity if "." in entity else f"default.{entity}"
        options = {
            "AWS_ENDPOINT_URL": self.aws,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "a-secret",
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }
        return DeltaTable(self.tables[f"main.{name}"]["storage_location"], storage_options=options)

    def execute(self, statement: str) -> None:
        """What a warehouse makes of a statement."""
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
            constraint = {"primary_key_constraint": {"name": "pk", "child_columns": keys}}
            self.tables[f"{found[1]}.{found[2]}.{found[3]}"]["table_constraints"] = [constraint]
        else:
            raise ValueError(f"[PARSE_SYNTAX_ERROR] Syntax error at or near {statement[:20]}")

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
        if self.tables[name]["table_type"] != "EXTERNAL":
            return []
        fields = json.loads(self.delta(name.removeprefix("main.")).schema().to_json())["fields"]
        return [{"name": f["name"], "type_text": _text(f["type"]), "nullable": f["nullable"]} for f in fields]


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
    running: dict[str, int]

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._route("GET")

    def do_POST(self) -> None:
        self._route("POST")

    def do_DELETE(self) -> None:
        self._route("DELETE")

    def _reply(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _route(self, method: str) -> None:
        state, parts = self.server_state, urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/.well-known/"):
            return self._reply(200, {})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._reply(403, {"error_code": "PERMISSION_DENIED", "message": "Invalid access token."})
        catalog, last = "/api/2.1/unity-catalog/", parts.path.rsplit("/", 1)[1]
        if parts.path.startswith("/api/2.0/sql/warehouses/"):
            if last != WAREHOUSE:
                return self._reply(
                    404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"No warehouse {last}."}
                )
            return self._reply(200, {"id": last, "name": "small", "state": "STOPPED"})
        if parts.path == f"{catalog}schemas":
            return self._reply(200, {"schemas": [{"name": name} for name in sorted(state.schemas)]})
        if parts.path == f"{catalog}tables":
            mine = [t for t in state.tables.values() if t["schema_name"] == query["schema_name"]]
            return self._reply(200, {"tables": mine})
        if parts.path.startswith(f"{catalog}tables/"):
            if last not in state.tables:
                return self._reply(
                    404, {"error_code": "TABLE_DOES_NOT_EXIST", "message": f"No table {last}."}
                )
            if method == "DELETE":
                del state.tables[last]
                return self._reply(200, {})
            return self._reply(200, state.tables[last] | {"columns": state.columns(last)})
        if parts.path == "/api/2.0/sql/statements" and method == "POST":
            return self._execute(body)
        if parts.path.startswith("/api/2.0/sql/statements/"):
            return self._running(last)
        return self._reply(404, {"error_code": "ENDPOINT_NOT_FOUND", "message": parts.path})

    def _execute(self, body: dict[str, Any]) -> None:
        try:
            self.server_state.execute(body["statement"])
        except ValueError as error:
            status = {"state": "FAILED", "error": {"error_code": "BAD_REQUEST", "message": str(error)}}
            return self._reply(200, {"statement_id": "s", "status": status})
        statement = str(uuid.uuid4())
        self.running[statement] = self.server_state.slow
        return self._running(statement)

    def _running(self, statement: str) -> None:
        self.running[statement] -= 1
        state = "RUNNING" if self.running[statement] >= 0 else "SUCCEEDED"
        self._reply(200, {"statement_id": statement, "status": {"state": state}})


@contextlib.contextmanager
def databricks_server() -> Iterator[DatabricksServer]:
    """Start a facade and an S3."""
    with aws_server() as aws:
        bucket(aws, BUCKET)
        state = DatabricksServer(aws=aws)
        handler = type("Handler", (_Handler,), {"server_state": state, "running": {}})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield state
        finally:
            server.shutdown()
            serving.join()
            server.server_close()
