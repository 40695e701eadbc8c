"""A small REST service that keeps the contract as far as the provider's engine needs it, in memory.

It is no stand-in for leatstream in acceptance tests: those run against the real service
(``tests/terraform``). It exists so that the engine's rules can be tested in milliseconds, and so that
failures can be ordered.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "leat_double"
PLAIN = re.compile(r"[a-z_][a-z0-9_$]*\Z")
ROUTES = [
    ("database", re.compile(r"/v1/databases/([^/]+)\Z")),
    ("schema", re.compile(r"/v1/databases/([^/]+)/schemas/([^/]+)\Z")),
    ("store", re.compile(r"/v1/stores/([^/]+)\Z")),
    ("entity", re.compile(r"/v1/stores/([^/]+)/entities/([^/]+)\Z")),
    ("relation", re.compile(r"/v1/relations/([^/]+)\Z")),
    ("query", re.compile(r"/v1/queries/([^/]+)\Z")),
]


class Problem(Exception):
    def __init__(self, status: int, code: str, detail: str, **more: Any) -> None:
        self.status = status
        self.document = {
            "type": f"/problems/{code}",
            "title": code,
            "status": status,
            "code": code,
            "detail": detail,
            "request_id": "r-1",
            **more,
        }


def names(text: str) -> tuple[str, ...]:
    parts = re.findall(r'"((?:[^"]|"")+)"|([^".]+)', unquote(text))
    return tuple(quoted.replace('""', '"') if quoted else plain.lower() for quoted, plain in parts)


def quoted(name: str) -> str:
    return name if PLAIN.match(name) else '"' + name.replace('"', '""') + '"'


def canonical(sql: str) -> str:
    sql = re.sub(r"--[^\n]*", " ", sql)
    return " ".join(sql.replace(";", " ").split()).casefold()


class Double:
    """State of the service. ``log`` holds (method, path, body) of every request that changes something."""

    def __init__(self, assume: bool = True) -> None:
        self.lock = threading.RLock()
        self.objects: dict[tuple[str, ...], dict[str, Any]] = {}
        self.log: list[tuple[str, str, Any]] = []
        self.conditions: list[dict[str, str | None]] = []
        self.assume = assume
        self.assumed: list[Any] = []
        self.next_state: dict[str, str] = {}
        self.refuse: list[Problem] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"double": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.token = TOKEN

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    # ---- requests ------------------------------------------------------------------------------------------

    def handle(self, method: str, target: str, body: Any, headers: Any) -> tuple[int, Any]:
        if headers.get("Authorization") != f"Bearer {self.token}":
            raise Problem(401, "unauthenticated", "the token is not valid")
        parts = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        with self.lock:
            if parts.path == "/v1/server":
                return 200, {"name": "double", "version": "0", "api_version": "v1"}
            if parts.path == "/v1/statements:validate":
                return 200, self.validate(body)
            if parts.path.endswith(":restart"):
                return 202, self.restart(names(parts.path.rpartition("/")[2].partition(":")[0])[0])
            if parts.path.endswith("/logs"):
                return 200, {"lines": ["starting", "java.lang.IllegalStateException: boom"]}
            for kind, pattern in ROUTES:
                match = pattern.match(parts.path)
                if match:
                    key = self.key(kind, match.groups())
                    if query.get("dry_run") == "true":
                        return 200, _public(self.make(key, body, self.objects.get(key)))
                    if method != "GET":
                        self.log.append((method, target, body))
                        self.conditions.append({n: headers.get(n) for n in ("If-Match", "If-None-Match")})
                    return getattr(self, f"on_{method.lower()}")(key, body, headers, query)
        raise Problem(404, "no-route", "no such route")

    def key(self, kind: str, parts: tuple[str, ...]) -> tuple[str, ...]:
        if kind == "entity":
            return kind, names(parts[0])[0], unquote(parts[1])
        return kind, *(name for part in parts for name in names(part))

    def on_get(self, key: tuple[str, ...], body: Any, headers: Any, query: dict[str, str]) -> tuple[int, Any]:
        found = self.objects.get(key)
        if found is None:
            raise Problem(404, "not-found", f"{key[0]} {'.'.join(key[1:])} does not exist")
        if "wait_for" in query:
            found["status"]["state"] = self.next_state.get(key[1], found["desired_state"])
        return 200, _public(found)

    def on_put(self, key: tuple[str, ...], body: Any, headers: Any, query: dict[str, str]) -> tuple[int, Any]:
        if self.refuse:
            raise self.refuse.pop(0)
        found = self.objects.get(key)
        if found and headers.get("If-None-Match") == "*":
            raise Problem(409, "already-exists", f"{key[0]} {'.'.join(key[1:])} exists")
        if found and headers.get("If-Match") not in (None, f'"{found["generation"]}"'):
            raise Problem(412, "stale", "the object has changed")
        if found and found["_body"] == body:
            return 200, _public(found)
        value = self.make(key, body, found)
        self.objects[key] = value
        return (200 if found else 201), _public(value)

    def on_delete(
        self, key: tuple[str, ...], body: Any, headers: Any, query: dict[str, str]
    ) -> tuple[int, Any]:
        if key not in self.objects:
            raise Problem(404, "not-found", "gone")
        users = self._users(key)
        if users:
            raise Problem(
                409, "has-dependents", "it is used", errors=[{"detail": "drop those first"}], dependents=users
            )
        if key[0] == "query":
            self.objects.pop(("relation", *names(self.objects[key]["sink"])), None)
        del self.objects[key]
        return 204, None

    def restart(self, name: str) -> Any:
        self.log.append(("POST", f"/v1/queries/{name}:restart", None))
        found = self.objects["query", name]
        found["status"] |= {"state": "starting", "message": None}
        return _public(found)

    def _users(self, key: tuple[str, ...]) -> list[str]:
        """What depends on an object, as the service names it."""
        found = []
        for other, value in self.objects.items():
            fqn = ".".join(quoted(part) for part in other[1:])
            inside = other[0] in ("schema", "relation") and other[1 : len(key)] == key[1:]
            if (key[0] == "database" and inside) or (
                key[0] == "schema" and other[0] == "relation" and inside
            ):
                found.append(f"{'schema' if other[0] == 'schema' else 'stream'} {fqn}")
            elif key[0] == "store" and other[0] == "relation" and value.get("store") == key[1]:
                found.append(f"stream {fqn}")
            elif (other[0], key[0]) == ("query", "relation") and _fqn(key) in value["sources"]:
                found.append(f"query {other[1]}")
        return found

    # ---- objects -------------------------------------------------------------------------------------------

    def make(self, key: tuple[str, ...], body: Any, found: dict[str, Any] | None) -> dict[str, Any]:
        kind = key[0]
        names_ = dict(
            zip(
                {
                    "schema": ("database", "name"),
                    "entity": ("store", "name"),
                    "relation": ("database", "schema", "name"),
                }.get(kind, ("name",)),
                key[1:],
                strict=True,
            )
        )
        value: dict[str, Any] = {**json.loads(json.dumps(body or {})), **names_, "_body": body}
        if kind != "entity":
            value |= {
                "id": found["id"] if found else str(uuid.uuid4()),
                "owner": "sysadmin",
                "generation": found["generation"] + 1 if found else 1,
            }
        if kind in ("schema", "relation"):
            value["fqn"] = ".".join(quoted(part) for part in key[1:])
        if kind == "relation":
            value["effective"] = {"topic.partitions": {"value": 3, "origin": "default"}}
        if kind == "entity":
            value["effective"] = {
                "partitions": body["kafka"]["partitions"],
                "replicas": body["kafka"]["replicas"],
                "configs": body["kafka"].get("configs") or {},
            }
        if kind == "store":
            status = {"state": "ready", "message": None, "checked_at": "now"}
            if key[1] in self.next_state:
                status |= {"state": self.next_state[key[1]], "message": "the login is refused"}
            value |= {"kind": "kafka", "status": status}
            if "sasl" in value["kafka"]:
                value["kafka"]["sasl"].pop("password", None)
            value["_password"] = (body["kafka"].get("sasl") or {}).get("password")
        if kind == "query":
            self.make_query(key, value, body, found)
        return value

    def make_query(self, key: tuple[str, ...], value: dict[str, Any], body: Any, found: Any) -> None:
        told = self.validate(body)
        if not told["valid"]:
            fault = told["statements"][0]["problems"][0]
            raise Problem(422, fault["code"], fault["detail"], errors=[fault])
        plan = told["statements"][0]["plan"]
        attempt = found["status"]["job"]["attempt"] + 1 if found else 1
        value |= {
            "desired_state": body.get("desired_state", "running"),
            "kind": told["statements"][0]["kind"],
            "sources": [s["fqn"] for s in plan["sources"]],
            "sink": plan["sink"]["fqn"],
            "effective": plan["sink"]["properties"],
            "plan": plan,
            "status": {
                "state": "starting",
                "message": None,
                "hint": None,
                "has_run": False,
                "observed_generation": value["generation"],
                "job": {
                    "driver_id": f"d{attempt}",
                    "attempt": attempt,
                    "mode": "realtime",
                    "mode_reason": "",
                },
            },
        }
        database, schema, name = names(plan["sink"]["fqn"])
        self.objects[("relation", database, schema, name)] = {"_body": None, "fqn": plan["sink"]["fqn"]}
        self.next_state.setdefault(key[1], value["desired_state"])
        if self.next_state[key[1]] in ("running", "stopped"):
            self.next_state[key[1]] = value["desired_state"]
        if self.next_state[key[1]] == "failed":
            value["status"] |= {"error": {"code": "job-failed", "detail": "boom in the job"}}

    # ---- SQL -----------------------------------------------------------------------------------------------

    def validate(self, body: Any) -> dict[str, Any]:
        """Understands ``CREATE STREAM name AS SELECT … FROM name …`` and no more."""
        if "assume" in body and not self.assume:
            raise Problem(
                422,
                "validation",
                "unknown member",
                errors=[{"detail": "unknown member", "pointer": "#/assume", "code": "validation"}],
            )
        self.assumed.append(body.get("assume"))
        sql = body["sql"]
        meaning = {"canonical": canonical(sql), "hash": canonical(sql)}
        text = re.sub(r"--[^\n]*", lambda m: " " * len(m.group()), sql)
        found = re.search(r"CREATE\s+STREAM\s+(\S+)\s+AS\s+SELECT\s.*?\bFROM\s+([^\s;]+)", text, re.I | re.S)
        if not found:
            return self._fault("sql-syntax", "expected CREATE STREAM … AS SELECT", sql, 0, 6) | meaning
        source = self._full(found.group(2), body)
        relations = {tuple(key[1:]) for key in self.objects if key[0] == "relation"}
        assumed = {
            (r["database"], r["schema"], r["name"]) for r in (body.get("assume") or {}).get("relations", [])
        }
        if source not in relations | assumed:
            return (
                self._fault(
                    "unknown-relation",
                    f"relation {found.group(2)} does not exist",
                    sql,
                    found.start(2),
                    len(found.group(2)),
                )
                | meaning
            )
        sink = ".".join(quoted(part) for part in self._full(found.group(1), body))
        partitions = {"value": 6, "origin": "left_most_source", "from": ".".join(map(quoted, source))}
        plan = {
            "sources": [{"fqn": ".".join(map(quoted, source)), "kind": "stream", "left_most": True}],
            "sink": {
                "fqn": sink,
                "kind": "stream",
                "properties": {"topic.partitions": partitions},
                "columns": [],
            },
            "joins": [],
            "mode": "realtime",
            "mode_reason": "stateless Kafka to Kafka",
            "delivery": "at_least_once",
        }
        return {
            "valid": True,
            "statements": [{"kind": "create_stream_as", "plan": plan, "problems": []}],
            **meaning,
        }

    def _full(self, text: str, body: Any) -> tuple[str, ...]:
        parts = names(text)
        return (*(body.get("database", "?"), body.get("schema", "?"))[: 3 - len(parts)], *parts)

    def _fault(self, code: str, detail: str, sql: str, at: int, length: int) -> dict[str, Any]:
        before = sql[:at]
        place = {
            "line": before.count("\n") + 1,
            "column": at - (before.rfind("\n") + 1) + 1,
            "offset": at,
            "length": length,
        }
        fault = {"code": code, "detail": detail, "position": place, "sqlstate": "42601"}
        return {"valid": False, "statements": [{"kind": "unknown", "plan": None, "problems": [fault]}]}


def _fqn(key: tuple[str, ...]) -> str:
    return ".".join(quoted(part) for part in key[1:])


def _public(value: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps({key: one for key, one in value.items() if not key.startswith("_")}))


class _Handler(BaseHTTPRequestHandler):
    double: Double
    protocol_version = "HTTP/1.1"

    def _run(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        try:
            status, document = self.double.handle(self.command, self.path, body, self.headers)
            kind = "application/json"
        except Problem as problem:
            status, document, kind = problem.status, problem.document, "application/problem+json"
        data = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = _run

    def log_message(self, *args: Any) -> None:
        pass
