"""Grants, memberships and owners change on two servers of one catalog; a plain closure says what follows."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.model.access import OBJECT_PRIVILEGES
from leatstream.rest.app import create_app
from leatstream.storage.unit_of_work import open_units

ROLES = ("r0", "r1", "r2", "r3")
DATABASES = ("d0", "d1")
SCHEMAS = ("d0.a", "d0.b", "d1.a")
OBJECTS = (*(("database", one) for one in DATABASES), *(("schema", one) for one in SCHEMAS))
USED = "usage"
Grant = tuple[str, str, str | None, str | None]
"""Privilege, kind, name, and the database that all schemas are meant of; without both all objects of the kind."""


def _grants() -> st.SearchStrategy[Grant]:
    databases = st.sampled_from((USED, "create_schema", "modify"))
    schemas = st.sampled_from((USED, "create_relation", "modify"))
    return st.one_of(
        st.tuples(databases, st.just("database"), st.sampled_from((*DATABASES, None)), st.none()),
        st.tuples(schemas, st.just("schema"), st.sampled_from((*SCHEMAS, None)), st.none()),
        st.tuples(schemas, st.just("schema"), st.none(), st.sampled_from(DATABASES)),
    )


class Closure:
    """What the changes so far mean, worked out again for each question."""

    def __init__(self) -> None:
        self.grants: dict[str, set[Grant]] = {one: set() for one in (*ROLES, "public")}
        self.includes: dict[str, set[str]] = {one: set() for one in ROLES}
        self.members: set[str] = set(ROLES)
        self.owners: dict[tuple[str, str], str] = {}

    def roles(self, role: str) -> set[str]:
        """A role and all that it includes."""
        found, left = {role, "public"}, [role]
        while left:
            new = self.includes[left.pop()] - found
            found |= new
            left += new
        return found

    def privileges(self, role: str, kind: str, name: str) -> set[str]:
        """Those of a role on an object."""
        roles = self.roles(role)
        if self.owners.get((kind, name)) in roles:
            return {one.value for one in OBJECT_PRIVILEGES[kind]}
        database = name.partition(".")[0]
        return {
            privilege
            for one in roles
            for privilege, on, exact, within in self.grants[one]
            if on == kind and (exact == name or (exact is None and within in (None, database)))
        }

    def names(self, role: str, database: str) -> bool:
        """Whether a grant on what is in a database makes it visible by name."""
        grants = [grant for one in self.roles(role) for grant in self.grants[one]]
        return any(
            within == database or (exact or "").startswith(f"{database}.") for *_, exact, within in grants
        )


class Servers:
    """Two servers of one catalog, and a token for each role and the administrator."""

    def __init__(self, directory: Path, catalog: str | None) -> None:
        world = fakes.make_world(directory, catalog)
        second = open_units(catalog or f"sqlite:///{directory / 'catalog.db'}")
        self._open = contextlib.ExitStack()
        for units in (world.units, second):
            self._open.callback(units.close)
        # An entered client keeps its loop: to start one takes longer than most of these requests.
        self._clients = [
            self._open.enter_context(TestClient(create_app(env), raise_server_exceptions=False))
            for env in (world.env, replace(world.env, open_unit=second))
        ]
        self._tokens = {"admin": fakes.administrator(world)}
        for name in DATABASES:
            self.admin("PUT", f"databases/{name}", {})
        for name in SCHEMAS:
            self.admin("PUT", f"databases/{name.replace('.', '/schemas/')}", {})
        for role in ROLES:
            self.admin("PUT", f"roles/{role}", {})
            self.admin("PUT", f"service-accounts/{role}", {"roles": [role]})
            made = self.admin("POST", f"tokens/{role}", {"account": role, "scope": "read"})
            self._tokens[role] = made.json()["value"]

    def admin(self, method: str, path: str, body: Any = None, *, server: int = 0) -> Any:
        """The answer to a request of the administrator."""
        return self.ask("admin", method, path, body, server=server)

    def ask(self, who: str, method: str, path: str, body: Any = None, *, server: int) -> Any:
        """The answer of a server."""
        headers = {"Authorization": f"Bearer {self._tokens[who]}"}
        return self._clients[server].request(method, f"/v1/{path}", json=body, headers=headers)

    def close(self) -> None:
        """End the servers and close the catalog's connections."""
        self._open.close()


class AccessMachine(RuleBasedStateMachine):
    """Set ``catalog`` in a subclass for another catalog than SQLite's; it is called for each example."""

    @staticmethod
    def catalog() -> contextlib.AbstractContextManager[str | None]:
        """The URL of an empty catalog."""
        return contextlib.nullcontext()

    def __init__(self) -> None:
        super().__init__()
        self._open = contextlib.ExitStack()
        directory = self._open.enter_context(memory_directory())
        self.servers = Servers(Path(directory), self._open.enter_context(self.catalog()))
        self._open.callback(self.servers.close)
        self.known = Closure()

    @rule(
        role=st.sampled_from((*ROLES, "public")),
        grant=_grants(),
        server=st.integers(0, 1),
        gives=st.booleans(),
    )
    def grant_or_revoke(self, role: str, grant: Grant, server: int, gives: bool) -> None:
        """Add a grant, or take it away."""
        privilege, kind, name, within = grant
        body = {"grants": [{"privilege": privilege, "on": kind, "name": name, "in_database": within}]}
        path = f"roles/{role}:{'grant' if gives else 'revoke'}"
        answer = self.servers.admin("POST", path, body, server=server)
        assert answer.status_code == 200, answer.text
        if gives:
            self.known.grants[role].add(grant)
        else:
            self.known.grants[role].discard(grant)
        self.look(ROLES[0] if role == "public" else role, 1 - server)

    @rule(role=st.sampled_from(ROLES), member=st.sampled_from(ROLES), server=st.integers(0, 1))
    def include(self, role: str, member: str, server: int) -> None:
        """Have a role include another; a circle is refused."""
        circle = member in self.known.roles(role)
        answer = self.servers.admin("PUT", f"roles/{role}/members/role/{member}", {}, server=server)
        assert (answer.status_code >= 400) == circle, answer.text
        if not circle:
            self.known.includes[member].add(role)
        self.look(member, 1 - server)

    @rule(role=st.sampled_from(ROLES), member=st.sampled_from(ROLES), server=st.integers(0, 1))
    def exclude(self, role: str, member: str, server: int) -> None:
        """Take a role from another."""
        answer = self.servers.admin("DELETE", f"roles/{role}/members/role/{member}", server=server)
        assert answer.status_code in (204, 404), answer.text
        self.known.includes[member].discard(role)
        self.look(member, 1 - server)

    @rule(role=st.sampled_from(ROLES), server=st.integers(0, 1), has=st.booleans())
    def join_or_leave(self, role: str, server: int, has: bool) -> None:
        """Give the role's account its role, or take it away."""
        path = f"roles/{role}/members/service_account/{role}"
        answer = self.servers.admin("PUT" if has else "DELETE", path, {} if has else None, server=server)
        assert answer.status_code in (200, 201, 204, 404), answer.text
        self.known.members = self.known.members | {role} if has else self.known.members - {role}
        self.look(role, 1 - server)

    @rule(on=st.sampled_from(OBJECTS), role=st.sampled_from((*ROLES, "sysadmin")), server=st.integers(0, 1))
    def transfer(self, on: tuple[str, str], role: str, server: int) -> None:
        """Give an object to a role."""
        body = {"on": on[0], "name": on[1], "role": role}
        answer = self.servers.admin("POST", "ownership", body, server=server)
        assert answer.status_code == 204, answer.text
        self.known.owners[on] = role
        if role in ROLES:
            self.look(role, 1 - server)

    @rule(name=st.sampled_from(SCHEMAS), server=st.integers(0, 1))
    def make_again(self, name: str, server: int) -> None:
        """Drop and create a schema: its grants stay, and its new owner is who made it."""
        path = f"databases/{name.replace('.', '/schemas/')}"
        assert self.servers.admin("DELETE", path, server=server).status_code == 204
        assert self.servers.admin("PUT", path, {}, server=1 - server).status_code == 201
        self.known.owners.pop(("schema", name), None)

    @rule(role=st.sampled_from(ROLES), server=st.integers(0, 1))
    def look(self, role: str, server: int) -> None:
        """The next request on either server sees what was changed on the other."""
        for on in OBJECTS:
            self._look_at(role, *on, server)

    def _look_at(self, role: str, kind: str, name: str, server: int) -> None:
        answer = self.servers.ask(role, "GET", f"me/permissions?on={kind}&name={name}", server=server)
        if role not in self.known.members:
            assert answer.status_code in (401, 403), answer.text
            return
        held = self.known.privileges(role, kind, name)
        shown = answer.json()["privileges"] if answer.status_code == 200 else []
        assert set(shown) == held, answer.text
        seen = held or (kind == "database" and self.known.names(role, name))
        assert (answer.status_code == 200) == bool(seen), answer.text

    def teardown(self) -> None:
        """Close what was opened."""
        self._open.close()
