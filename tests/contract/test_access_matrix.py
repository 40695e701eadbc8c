"""Every operation, as everybody: what ``rest/needs.py`` declares is what is enforced.

A row that may pass is undone, so that the next one finds the same world.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import fakes
import pytest
from fastapi.routing import APIRoute
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.model.access import OBJECT_PRIVILEGES, ORGANIZATION, Scope
from leatstream.rest.app import ROUTERS, create_app
from leatstream.rest.needs import CHANGES, OPERATIONS, STATEMENTS, Needs
from leatstream.services.environment.results import kind_of
from leatstream.services.statements.execution import HANDLERS

R = "demo.s.r"
QUERY = {"sql": f"CREATE STREAM o AS SELECT * FROM {R}", "database": "demo", "schema": "s", "store": "k"}
RELATION = {
    "columns": [{"name": "n", "type": "BIGINT"}],
    "store": "k",
    "topic": "e",
    "value_format": "json",
}
FILE = {"file": "f.py", "content": "def grade(x: int) -> int:\n    return x\n"}
FUNCTION = {
    "arguments": [{"name": "x", "type": "BIGINT"}],
    "returns": "BIGINT",
    "source": "fs",
    "handler": "grade",
}
DESCRIPTORS = "CiIKB2EucHJvdG8SAXAiCwoBTRIGCgFuGAFiBnByb3RvMw=="


def app_text(name: str, sink: str) -> str:
    """The text of an application with one query."""
    return f"BEGIN APPLICATION {name} CREATE STREAM {sink} AS SELECT * FROM {R}; END APPLICATION"


# What the world holds: path to body, in the order in which it can be made.
WORLD: dict[str, dict[str, Any]] = {
    "databases/demo": {},
    "databases/idle": {},
    "databases/demo/schemas/s": {},
    "databases/demo/schemas/idle": {},
    "stores/k": {"kafka": {"bootstrap_servers": "localhost:9092"}},
    "stores/idle": {"kafka": {"bootstrap_servers": "localhost:9092"}},
    "stores/k/entities/e": {"kafka": {"partitions": 1, "replicas": 1}},
    "stores/k/entities/idle": {"kafka": {"partitions": 1, "replicas": 1}},
    f"relations/{R}": RELATION,
    "relations/demo.s.idle": RELATION,
    "secrets/pw": {"value": "x"},
    "schema-registries/sr": {"type": "confluent", "uris": "http://localhost:1"},
    "function-sources/fs": FILE,
    "function-sources/idle": FILE,
    "functions/grade": FUNCTION,
    "queries/q": QUERY,
    "applications/app": {**QUERY, "sql": app_text("app", "o2")},
    "roles/ro": {"grants": [{"privilege": "usage", "on": "store", "name": "k"}]},
    "roles/idle": {},
    "users/u": {"roles": ["public"]},
    "service-accounts/sa": {"roles": ["public"]},
}
INVITED = '"i@example.com"'
# The object of each kind that grants name.
OBJECTS = {
    "database": "demo",
    "schema": "demo.s",
    "store": "k",
    "relation": R,
    "secret": "pw",
    "schema_registry": "sr",
    "descriptor_source": "ds",
    "function_source": "fs",
    "function": "grade",
    "query": "q",
    "application": "app",
}


@dataclass
class Ask:
    """How an operation is asked.

    Attributes:
        path: what stands for the names in its path.
        body: of the request.
        params: of the query.
        objects: other objects than those of ``OBJECTS``.
    """

    path: dict[str, str] = field(default_factory=dict)
    body: Any = None
    params: dict[str, str] = field(default_factory=dict)
    objects: dict[str, str] = field(default_factory=dict)


NAMES = {
    "database": "demo",
    "schema": "s",
    "store": "k",
    "entity": "e",
    "relation": R,
    "secret": "pw",
    "registry": "sr",
    "source": "ds",
    "function_source": "fs",
    "function": "grade",
    "query": "q",
    "application": "app",
    "savepoint": "sp",
    "role": "ro",
    "user": "u",
    "service_account": "sa",
    "token": "t",
    "invitation": INVITED,
    "privilege": "usage",
    "on": "store",
    "member_kind": "user",
    "member": "u",
    "code": "not-found",
    "statement": "sel_1",
}


def idle(noun: str, name: str = "idle") -> Ask:
    """Asks for an object that nothing uses, so that it can be deleted."""
    return Ask(
        {noun: name}, objects={noun: {"schema": "demo.idle", "relation": "demo.s.idle"}.get(noun, name)}
    )


def new(noun: str, body: Any, name: str = "fresh") -> Ask:
    """Makes an object that does not exist."""
    return Ask({noun: name}, body)


ASKS: dict[str, Ask] = {
    "create_database": Ask(body={"name": "fresh"}),
    "put_database": new("database", {}),
    "delete_database": idle("database"),
    "put_schema": new("schema", {}),
    "delete_schema": idle("schema"),
    "put_secret": new("secret", {"value": "x"}),
    "put_schema_registry": new("registry", WORLD["schema-registries/sr"]),
    "put_store": new("store", WORLD["stores/k"]),
    "delete_store": idle("store"),
    "put_entity": new("entity", WORLD["stores/k/entities/e"]),
    "delete_entity": Ask({"entity": "idle"}),
    "put_relation": new("relation", RELATION, "demo.s.fresh"),
    "delete_relation": Ask({"relation": "demo.s.idle"}, objects={"relation": "demo.s.idle"}),
    "take_savepoint": Ask(body={"name": "sp2"}),
    "restart_query": Ask(body={}),
    "restart_failed_queries": Ask(body={"failed_by": "store-unreachable"}),
    "replace_query": Ask(body={"sql": QUERY["sql"]}),
    "rollback_query": Ask(body={}),
    "put_query": new("query", {**QUERY, "sql": QUERY["sql"].replace(" o ", " fresh ")}),
    "patch_query": Ask(body={"desired_state": "running"}),
    "create_function_source": Ask(body={"name": "fresh", **FILE}),
    "put_function_source": new("function_source", FILE),
    "delete_function_source": Ask({"function_source": "idle"}, objects={"function_source": "idle"}),
    "create_function": Ask(body={"name": "fresh", **FUNCTION}),
    "put_function": new("function", FUNCTION),
    "validate_object": Ask(body={"path": "/v1/relations/demo.s.fresh", "body": RELATION}),
    "put_application": new("application", {**QUERY, "sql": app_text("fresh", "fresh")}),
    "restart_application": Ask(body={}),
    "run_statements": Ask(body={"sql": "LIST STORES"}),
    "validate_statements": Ask(body={"sql": "LIST STORES"}),
    "put_role": new("role", {}),
    "delete_role": Ask({"role": "idle"}),
    "grant_privileges": Ask({"role": "idle"}, {"grants": WORLD["roles/ro"]["grants"]}),
    "revoke_privileges": Ask({"role": "idle"}, {"grants": WORLD["roles/ro"]["grants"]}),
    "transfer_ownership": Ask(body={"on": "store", "name": "k", "role": "public"}),
    "put_user": new("user", {}),
    "put_service_account": new("service_account", {}),
    "create_token": new("token", {"account": "idle"}),
    "rotate_token": Ask(body={"grace_minutes": 0}),
    "create_invitation": new("invitation", {"roles": ["public"]}, '"fresh@example.com"'),
    "get_permissions": Ask(params={"on": "store", "name": "k"}),
    "follow_events": Ask(params={"follow": "false"}),
    "put_grant": Ask({"role": "idle"}, {}, {"name": "k"}),
    "get_grant": Ask(params={"name": "k"}),
    "delete_grant": Ask(params={"name": "k"}),
    "get_membership": Ask({"role": "public"}),
    "put_membership": Ask({"role": "public", "member_kind": "user", "member": "v"}, {}),
    "delete_membership": Ask({"role": "public"}),
}
# Not asked here: each needs a state of its own, and has tests of its own.
ELSEWHERE = {
    "accept_invitation",  # counts once: tests/contract/test_invitations.py
    "get_sign_in",  # of a configured issuer: tests/contract/test_sign_in.py
    "read_rows",  # tests/contract/test_select.py: a running SELECT is its account's own
    "follow_query_logs",  # does not end; as get_query_logs
    "take_savepoint",  # of a query that runs: tests/contract/test_savepoints.py
    "get_savepoint",
    "delete_savepoint",
    "replace_query",  # of a query that runs: tests/contract/test_blue_green.py
    "rollback_query",
    "list_subjects",  # of a registry that answers: tests/contract/test_registry_subjects.py
    "list_subject_versions",
    "get_subject_version",
    "get_descriptor_source",  # as the other sources
    "put_descriptor_source",
    "delete_descriptor_source",
}


@dataclass
class Bearer:
    """Sends with a token of its own through the client of another; a client for each would start a thread each."""

    base: TestClient
    authorization: str

    def request(self, method: str, path: str, **more: Any) -> Any:
        """The answer."""
        return self.base.request(method, path, headers={"Authorization": self.authorization}, **more)


class World:
    """The world, and clients of roles that have exactly some grants."""

    def __init__(self, made: Any, client: TestClient) -> None:
        self.made, self.admin = made, client
        self._clients: dict[Any, Bearer] = {}
        for path, body in WORLD.items():
            self.put(path, body)
        self.put("service-accounts/idle", {"roles": ["public"]})
        self.put("roles/owners", {})
        self.put("users/v", {"roles": []})
        self.must(client.post("/v1/tokens/t", json={"account": "sa"}))
        self.invite()
        self.orgadmin = self.as_role("orgadmin", "chief", "admin")
        self.nobodies = {
            "no token": self.bearing(None),
            "an ended token": self._ended(),
            "a revoked token": self._revoked(),
        }

    def _ended(self) -> Bearer:
        client = self.as_role("orgadmin", "late", "admin")
        with self.made.units() as unit:
            (row,) = unit.tokens.list("late")
            unit.tokens.add(replace(row, expires_at=self.made.env.clock.now() - timedelta(seconds=1)))
            unit.commit()
        return client

    def _revoked(self) -> Bearer:
        client = self.as_role("orgadmin", "gone", "admin")
        assert self.admin.delete("/v1/tokens/gone").status_code == 204
        return client

    def must(self, answer: Any) -> Any:
        """The JSON of an answer that went well."""
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def invite(self) -> None:
        """Make the invitation of the world, again."""
        self.must(self.admin.post(f"/v1/invitations/{INVITED}", json={"roles": ["public"]}))

    def put(self, path: str, body: Any) -> None:
        """Put an object of the world, again."""
        self.must(self.admin.put(f"/v1/{path}", json=body))

    def client(self, grants: Iterable[tuple[str, str, str]], scope: str, base: str | None = None) -> Bearer:
        """A client whose role has exactly these grants, and inherits one more role."""
        key = (frozenset(grants), scope, base)
        if key not in self._clients:
            name = f"role{len(self._clients)}"
            listed = [{"privilege": p, "on": on, **({"name": n} if n else {})} for p, on, n in sorted(key[0])]
            if base is None or listed:
                self.put(f"roles/{name}", {"grants": listed, "inherits": [base] if base else []})
            role = name if base is None or listed else base
            self._clients[key] = self.as_role(role, f"acc{name}", scope)
        return self._clients[key]

    def as_role(self, role: str, account: str, scope: str) -> Bearer:
        """A client with a new token."""
        self.put(f"service-accounts/{account}", {"roles": [role]})
        body = {"account": account, "scope": scope}
        return self.bearing(self.must(self.admin.post(f"/v1/tokens/{account}", json=body))["value"])

    def bearing(self, token: str | None) -> Bearer:
        """A client with a token, or with none."""
        return Bearer(self.admin, f"Bearer {token}" if token else "")

    def give(self, kind: str, name: str, role: str) -> None:
        """Give an object to a role."""
        answer = self.admin.post("/v1/ownership", json={"on": kind, "name": name, "role": role})
        assert answer.status_code in (204, 404), answer.text


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One world for all rows."""
    with memory_directory() as directory:
        made = fakes.make_world(Path(directory))
        headers = {"Authorization": f"Bearer {fakes.administrator(made)}"}
        app = create_app(made.env)
        with TestClient(app, headers=headers, raise_server_exceptions=False) as client:
            yield World(made, client)
        made.units.close()


PATHS = {
    route.name: (next(iter(route.methods)), route.path)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and route.include_in_schema
}


def grants_of(needs: Needs, objects: dict[str, str]) -> list[tuple[str, str, str]]:
    """What is declared, as grants on objects."""
    known = OBJECTS | objects | {ORGANIZATION: ""}
    wanted = [one.split(" ") for one in needs.privileges]
    if needs.sees:
        wanted.append([OBJECT_PRIVILEGES[needs.sees][0].value, needs.sees])
    return [(privilege, kind, known[kind]) for privilege, kind in wanted]


class Row:
    """One operation on one set of objects."""

    def __init__(self, world: World, operation: str, needs: Needs, ask: Ask) -> None:
        self.world, self.operation, self.needs, self.ask = world, operation, needs, ask
        self.method, template = PATHS[operation]
        names = NAMES | ask.path
        self.path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda m: names[m[1]], template)
        self.faults: list[str] = []

    def send(self, client: Bearer) -> Any:
        """The answer."""
        return client.request(self.method, self.path, json=self.ask.body, params=self.ask.params)

    def passes(self, who: str, client: Bearer) -> None:
        """The request must be done; what it did is undone."""
        answer = self.send(client)
        if answer.status_code >= 300:
            self.faults.append(f"{who}: {answer.status_code} {answer.text[:300]}")
        else:
            self.undo(answer)

    def is_refused(self, who: str, client: Bearer, *statuses: int) -> None:
        """The request must be refused, as something hidden or as something forbidden."""
        answer = self.send(client)
        hidden = answer.status_code == 422 and answer.json()["code"] in ("unknown-relation", "validation")
        if answer.status_code in statuses or (hidden and 404 in statuses):
            return
        self.faults.append(f"{who}: {answer.status_code} {answer.text[:300]}")
        if answer.status_code < 300:
            self.undo(answer)

    def undo(self, answer: Any) -> None:
        """Bring the world back."""
        world, place = self.world, self.path.removeprefix("/v1/")
        if self.method == "DELETE":
            body = WORLD.get(place)
            if body is not None:
                world.put(place, body)
                if place == "service-accounts/sa":
                    world.must(world.admin.post("/v1/tokens/t", json={"account": "sa"}))
            elif self.operation == "delete_grant":
                world.put("roles/ro", WORLD["roles/ro"])
            elif self.operation == "delete_membership":
                world.put("users/u", WORLD["users/u"])
            elif self.operation == "delete_invitation":
                world.invite()
            elif self.operation == "revoke_token":
                world.must(world.admin.post("/v1/tokens/t", json={"account": "sa"}))
        elif answer.status_code == 201:
            made = answer.headers.get("Location", self.path)
            done = world.admin.delete(made, params=self.ask.params)
            assert done.status_code in (202, 204), (made, done.text)
        elif self.operation == "transfer_ownership":
            world.give("store", "k", "sysadmin")

    def nobodies(self) -> dict[str, Bearer]:
        """Clients without a token that is accepted."""
        return self.world.nobodies

    def check(self) -> None:
        """Everybody in turn."""
        world, needs = self.world, self.needs
        if not needs.token:
            self.passes("without a token", world.bearing(None))
            return
        for who, client in self.nobodies().items():
            self.is_refused(who, client, 401)
        grants = grants_of(needs, self.ask.objects)
        scopes = list(Scope)
        exact = self.exact(grants, needs.scope.value)
        for less in scopes[: scopes.index(needs.scope)]:
            self.is_refused(f"scope {less.value}", self.exact(grants, less.value), 403)
        nothing = world.client((), Scope.ADMIN.value)
        if grants or needs.owns or needs.role:
            self.is_refused("no grant", nothing, 403, 404)
        else:
            self.passes("no grant", nothing)
        for left in grants if len(grants) > 1 else ():
            rest = [one for one in grants if one != left]
            self.is_refused(f"without {left}", self.exact(rest, needs.scope.value), 403, 404)
        self.owned(exact, grants)
        self.passes("orgadmin", world.orgadmin)

    def exact(self, grants: list[tuple[str, str, str]], scope: str) -> Bearer:
        """A client that has exactly what is declared, but for ownership."""
        base = self.needs.role or ("owners" if self.needs.owns else None)
        return self.world.client(grants, scope, base)

    @staticmethod
    def inner(kinds: set[str]) -> bool:
        """Whether one of these kinds is in a database."""
        return not kinds.isdisjoint(("schema", "relation"))

    def owned(self, exact: TestClient, grants: list[tuple[str, str, str]]) -> None:
        """Exactly what is needed, and the owner of each object."""
        world, known = self.world, OBJECTS | self.ask.objects
        kinds = {kind for _, kind, _ in grants if kind != ORGANIZATION}
        if self.needs.owns:
            if self.inner({self.needs.owns}):
                grants = [*grants, ("usage", "database", "demo"), ("usage", "schema", "demo.s")]
                exact = self.exact(grants, self.needs.scope.value)
            world.give(self.needs.owns, known[self.needs.owns], "owners")
            self.passes("exactly the needed, as owner", exact)
            world.give(self.needs.owns, known[self.needs.owns], "sysadmin")
            return
        self.passes("exactly the needed", exact)
        if kinds:
            for kind in kinds:
                world.give(kind, known[kind], "owners")
            # What holds the object is a grant's to show: an owner has no grant.
            path = [("usage", kind, known[kind]) for kind in ("database", "schema") if kind not in kinds]
            rest = [one for one in grants if one[1] == ORGANIZATION] + (path if self.inner(kinds) else [])
            self.passes("owner", world.client(rest, self.needs.scope.value, "owners"))
            for kind in kinds:
                world.give(kind, known[kind], "sysadmin")


def rows(world: World) -> Iterator[Row]:
    """All rows: each operation on a new object, and each PUT on one that exists."""
    for operation, needs in OPERATIONS.items():
        if operation not in ELSEWHERE:
            yield Row(world, operation, needs, ASKS.get(operation, Ask()))
    for operation, needs in CHANGES.items():
        if operation not in ELSEWHERE:
            row = Row(world, operation, needs, Ask(params=ASKS[operation].params))
            row.ask.body = WORLD.get(row.path.removeprefix("/v1/"), {})
            if operation not in ("put_grant", "put_entity"):
                row.ask.body = row.ask.body | {"comment": "changed"}
            yield row


def test_every_operation_needs_what_is_declared(world: World) -> None:
    faults = []
    for row in rows(world):
        row.check()
        faults += [f"{row.operation} {row.path}: {fault}" for fault in row.faults]
    assert not faults, "\n".join(faults)


KAFKA = "WITH ('type' = KAFKA, 'uris' = 'h:1', 'tls.disabled' = TRUE)"
COLUMNS = "(n BIGINT) WITH ('topic' = 'e', 'value.format' = 'json')"
# Kind to a statement, and to one that takes it back. The others need more than this world, and have tests of
# their own in test_access.py, or are one with an operation above.
TEXTS: dict[str, tuple[str, str | None]] = {
    "create_database": ("CREATE DATABASE fresh", "DROP DATABASE fresh"),
    "create_schema": ("CREATE SCHEMA fresh IN DATABASE demo", "DROP SCHEMA demo.fresh"),
    "create_store": (f"CREATE STORE fresh {KAFKA}", "DROP STORE fresh"),
    "create_entity": (
        "CREATE ENTITY fresh IN STORE k WITH ('kafka.partitions' = 1, 'kafka.replicas' = 1)",
        "DROP ENTITY fresh IN STORE k",
    ),
    "create_application": (app_text("fresh", "fresh"), "DROP APPLICATION fresh"),
    "terminate_application": ("TERMINATE APPLICATION app", "RESTART APPLICATION app"),
    "restart_application": ("RESTART APPLICATION app", None),
    "create_secret": (
        "CREATE SECRET fresh WITH ('type' = generic_string, 'secret_string' = 'v')",
        "DROP SECRET fresh",
    ),
    "create_schema_registry": (
        "CREATE SCHEMA_REGISTRY fresh WITH ('type' = CONFLUENT, 'uris' = 'http://h:1')",
        "DROP SCHEMA_REGISTRY fresh",
    ),
    "update_secret": ("UPDATE SECRET pw WITH ('secret_string' = 'w')", None),
    "update_schema_registry": ("UPDATE SCHEMA_REGISTRY sr WITH ('uris' = 'http://h:2')", None),
    "create_stream": (f"CREATE STREAM fresh {COLUMNS}", "DROP STREAM fresh"),
    "create_changelog": (
        f"CREATE CHANGELOG fresh {COLUMNS.replace(')', ', PRIMARY KEY (n))', 1)}",
        "DROP CHANGELOG fresh",
    ),
    "create_stream_as": (f"CREATE STREAM fresh AS SELECT * FROM {R}", "DROP QUERY fresh"),
    "create_materialized_view_as": (
        f"CREATE MATERIALIZED VIEW fresh AS SELECT n, count(*) AS c FROM {R} GROUP BY n",
        "DROP QUERY fresh",
    ),
    "insert_values": (f"INSERT INTO {R} VALUES (1)", None),
    "insert_entity": ("INSERT INTO ENTITY e IN STORE k VALUE('{}')", None),
    "update_store": ("UPDATE STORE k WITH ('uris' = 'h:2')", None),
    "update_entity": ("UPDATE ENTITY e IN STORE k WITH ('kafka.partitions' = 1)", None),
    "use": ("USE STORE k", None),
    "set_default": ("SET DEFAULT STORE k", None),
    "list_objects": ("LIST STORES", None),
    "describe": ("DESCRIBE STORE k", None),
    "describe_query": ("DESCRIBE QUERY q", None),
    "describe_statement": (f"DESCRIBE CREATE STREAM fresh AS SELECT * FROM {R}", None),
    "terminate_query": ("TERMINATE QUERY q", "RESTART QUERY q"),
    "restart_query": ("RESTART QUERY q", None),
    "restart_queries": ("RESTART QUERIES FAILED BY 'store-unreachable'", None),
    "create_role": ("CREATE ROLE fresh", "DROP ROLE fresh"),
    "create_account": ("CREATE USER fresh", "DROP USER fresh"),
    "create_token": ("CREATE API_TOKEN fresh WITH ('account' = 'idle')", "DROP API_TOKEN fresh"),
    "invite_user": (
        "INVITE USER 'fresh@example.com' WITH ('roles' = 'public')",
        "DROP INVITATION 'fresh@example.com'",
    ),
    "grant_privileges": ("GRANT USAGE ON STORE k TO ROLE idle", "REVOKE USAGE ON STORE k FROM ROLE idle"),
    "grant_role": ("GRANT ROLE public TO USER v", "REVOKE ROLE public FROM USER v"),
    "can_i": ("CAN I USAGE ON STORE k", None),
    "list_grants": ("LIST GRANTS TO ROLE public", None),
}


class StatementRow(Row):
    """One statement."""

    def __init__(self, world: World, kind: str, needs: Needs) -> None:
        text, self.back = TEXTS[kind]
        context = {"database": "demo", "schema": "s", "store": "k"}
        super().__init__(world, "run_statements", needs, Ask(body={"sql": text, **context}))
        self.operation = kind

    def nobodies(self) -> dict[str, Bearer]:
        """None: the operation refuses them before it reads a statement."""
        return {}

    def undo(self, answer: Any) -> None:
        """Take it back."""
        if self.back is not None:
            self.world.must(self.world.admin.post("/v1/statements", json={**self.ask.body, "sql": self.back}))


def test_every_statement_has_its_line() -> None:
    kinds = {kind_of(one.__new__(one)) for one in HANDLERS}
    assert kinds == set(STATEMENTS) >= set(TEXTS)


def test_every_statement_needs_what_is_declared(world: World) -> None:
    faults = []
    for kind in TEXTS:
        row = StatementRow(world, kind, STATEMENTS[kind])
        row.check()
        faults += [f"{kind}: {fault}" for fault in row.faults]
    assert not faults, "\n".join(faults)
