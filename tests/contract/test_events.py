"""``/v1/events``: who sees which changes, and what a reader that comes back has missed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import fakes
import httpx2
import pytest
from served_app import serving
from starlette.testclient import TestClient

from leatstream.errors import CatalogAway
from leatstream.model.changes import BEGINNING
from leatstream.model.objects import Database
from leatstream.model.registered import Savepoint, SavepointState
from leatstream.rest import app as rest_app
from leatstream.rest import event_stream
from leatstream.services.environment import Principal, new_meta
from leatstream.services.nouns import changes as service

NDJSON = {"Accept": "application/x-ndjson"}
KAFKA = {"bootstrap_servers": "localhost:9092"}
COLUMNS = [{"name": "n", "type": "BIGINT"}]
RELATION = {"columns": COLUMNS, "store": "k", "topic": "t", "value_format": "json"}


@pytest.fixture
def admin(fresh: Any) -> Iterator[TestClient]:
    headers = {"Authorization": f"Bearer {fakes.administrator(fresh)}"}
    with TestClient(rest_app.create_app(fresh.env), headers=headers) as client:
        yield client


def put(client: Any, path: str, body: Any = None) -> None:
    answer = client.put(f"/v1/{path}", json=body or {})
    assert answer.status_code < 300, answer.text


def token_of(admin: TestClient, name: str, *grants: dict[str, str], base: tuple[str, ...] = ()) -> str:
    """The header of a new account whose role has these grants."""
    put(admin, f"roles/{name}", {"grants": list(grants), "inherits": list(base)})
    put(admin, f"service-accounts/{name}_account", {"roles": [name]})
    made = admin.post(f"/v1/tokens/{name}_token", json={"account": f"{name}_account", "scope": "admin"})
    return f"Bearer {made.json()['value']}"


def on(privilege: str, kind: str, name: str) -> dict[str, str]:
    return {"privilege": privilege, "on": kind, "name": name}


class Feed:
    """A reader that ends when there is nothing new, and begins where it ended."""

    def __init__(self, client: TestClient, authorization: str | None = None, **params: Any) -> None:
        self._client, self._params = client, params
        self._headers = NDJSON | ({"Authorization": authorization} if authorization else {})
        self.position: str | None = None
        self.resets: list[str] = []
        self.read()

    def read(self) -> list[tuple[str, str]]:
        """Type and name of what is new."""
        params = {"follow": "false", **self._params} | ({"after": self.position} if self.position else {})
        answer = self._client.get("/v1/events", params=params, headers=self._headers)
        assert answer.status_code == 200, answer.text
        items = [json.loads(line) for line in answer.text.splitlines()]
        assert items.pop() == {"end": {}}
        self.position = items[-1].get("position") or items[-1]["id"]
        self.resets = [one["reset"]["reason"] for one in items if "reset" in one]
        return [(one["type"], one["name"]) for one in items if "id" in one]


def test_a_reader_that_comes_back_gets_each_change_once(
    admin: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BATCH", 2)
    feed = Feed(admin)
    for number in range(3):
        put(admin, f"databases/d{number}")
    made = [("created", f"d{n}{tail}") for n in range(3) for tail in ("", ".public")]
    assert feed.read() == made
    assert feed.read() == []
    admin.delete("/v1/databases/d0/schemas/public")
    put(admin, "databases/d1", {"comment": "x"})
    assert feed.read() == [("deleted", "d0.public"), ("changed", "d1")]
    assert Feed(admin, tail=3).read() == []
    assert feed.resets == []


def test_the_header_of_browsers_resumes_too(admin: TestClient) -> None:
    def events(query: str = "?follow=false", **headers: str) -> list[dict[str, str]]:
        text = admin.get(f"/v1/events{query}", headers=headers).text
        return [dict(line.split(": ", 1) for line in part.split("\n")) for part in text.strip().split("\n\n")]

    assert admin.get("/v1/events?follow=false").headers["content-type"].startswith("text/event-stream")
    place = events()[0]["id"]
    put(admin, "databases/d")
    made = events(**{"Last-Event-ID": place})
    assert [one.get("event") for one in made] == [None, "change", "change", None, "end"]
    assert json.loads(made[1]["data"])["name"] == "d"
    assert made[1]["id"] == json.loads(made[1]["data"])["id"]
    assert (made[0]["id"], made[3]["id"]) == (place, made[2]["id"]), "an idle client learns its position"
    assert events(**{"Last-Event-ID": "never one"})[0]["event"] == "reset"
    again = events(f"?follow=false&after={place}", **{"Last-Event-ID": made[2]["id"]})
    assert [one.get("event") for one in again] == [None, None, "end"], "the address is that of the beginning"


def test_kind_and_name_filter(admin: TestClient) -> None:
    put(admin, "databases/d")
    put(admin, "databases/dd")
    put(admin, "roles/d")
    assert changes(admin, name="D") == ["d", "d.public", "d"]
    assert changes(admin, name="d", kind="schema") == ["d.public"]
    assert changes(admin, name='d."public"') == ["d.public"]
    assert changes(admin, name='"D"') == []
    assert changes(admin, kind="role", tail="1") == ["d"]
    for wrong in ({"kind": "table"}, {"name": "a.b.c.d"}, {"name": ""}, {"after": "evt_1"}, {"tail": "1000"}):
        assert admin.get("/v1/events", params=wrong).status_code == 422


def changes(client: TestClient, authorization: str | None = None, **params: str) -> list[str]:
    """Names of the last changes."""
    headers = NDJSON | ({"Authorization": authorization} if authorization else {})
    asked = {"tail": "200", "follow": "false", **params}
    lines = client.get("/v1/events", params=asked, headers=headers).text.splitlines()
    return [item["name"] for item in map(json.loads, lines) if "id" in item]


def test_a_reader_sees_changes_of_what_it_sees(admin: TestClient) -> None:
    put(admin, "stores/k", {"kafka": KAFKA})
    put(admin, "stores/k/entities/t", {"kafka": {"partitions": 1, "replicas": 1}})
    for name in ("d", "hidden"):
        put(admin, f"databases/{name}")
    for name in ("mine", "theirs"):
        put(admin, f"relations/d.public.{name}", RELATION)
    put(admin, "users/somebody", {"roles": []})
    some = token_of(admin, "some", on("select", "relation", "d.public.mine"))
    feed = Feed(admin, some)
    assert changes(admin, some) == ["d", "d.public", "d.public.mine", "some", "some_account", "some_token"]
    for path in ("databases/d", "databases/hidden", "stores/k"):
        put(admin, path, {"comment": "x"} | ({"kafka": KAFKA} if "k" in path[-1] else {}))
    assert feed.read() == [("changed", "d")]
    for name in ("mine", "theirs"):
        assert admin.delete(f"/v1/relations/d.public.{name}").status_code == 204
    assert feed.read() == [("deleted", "d.public.mine")]
    assert changes(admin, some)[-1] == "d.public.mine"


def test_a_later_grant_shows_nothing_of_what_had_the_name_before(admin: TestClient) -> None:
    """Of an object that is deleted, the grants of that time count; an owner sees what it owned."""
    owner = token_of(admin, "owner", {"privilege": "create_database", "on": "organization"})
    late = token_of(admin, "late")
    feed = Feed(admin, late)
    answer = admin.put("/v1/databases/d", json={}, headers={"Authorization": owner})
    assert answer.status_code == 201
    for path in ("d/schemas/public", "d"):
        assert admin.delete(f"/v1/databases/{path}", headers={"Authorization": owner}).status_code == 204
    put(admin, "databases/d")
    put(admin, "roles/late", {"grants": [on("usage", "database", "d")]})
    shown = changes(admin, late)
    assert [name for name in shown if name.startswith("d")] == ["d"]
    assert feed.read() == []
    assert feed.resets == ["The rights of the role have changed: it may see other objects now."]
    put(admin, "databases/d", {"comment": "x"})
    assert (feed.read(), feed.resets) == ([("changed", "d")], [])
    assert changes(admin, owner).count("d") == 2, "created and deleted, and nothing of its successor"


def test_a_position_that_is_not_kept_is_a_reset(admin: TestClient, fresh: Any) -> None:
    feed = Feed(admin)
    put(admin, "databases/d")
    service.forget_old_changes(fresh.env)
    assert feed.read() == [("created", "d"), ("created", "d.public")]
    for _ in range(2):
        put(admin, "databases/e")
        fresh.env.settings = replace(fresh.env.settings, keep_changes=0.0)
        service.forget_old_changes(fresh.env)
    assert feed.read() == []
    assert feed.resets == ["The position is too old, or of another catalog: changes may be missing."]
    assert (feed.read(), feed.resets) == ([], [])
    feed.position = BEGINNING
    assert feed.read() == []
    assert len(feed.resets) == 1


def test_a_catalog_that_is_away_is_no_end(
    admin: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: Any) -> bool:
        raise CatalogAway("gone")

    monkeypatch.setattr(service.Feed, "has_news", away)
    items = [
        json.loads(one) for one in admin.get("/v1/events?follow=false", headers=NDJSON).text.splitlines()
    ]
    assert [list(one) for one in items] == [["position"], ["error"]]
    assert items[1]["error"]["code"] == "catalog-unreachable"


def test_a_reader_that_is_overtaken_by_the_deletion_of_old_changes_gets_a_reset(fresh: Any) -> None:
    admin = Principal("admin", "orgadmin")
    feed = service.open_feed(fresh.env, admin, None, 0)
    for name in ("d", "e"):
        with fresh.units() as unit:
            unit.databases.add(database(name))
            unit.commit()
        fresh.env.settings = replace(fresh.env.settings, keep_changes=-60.0)
        service.forget_old_changes(fresh.env)
    assert feed.look(admin).reset is not None
    assert feed.look(admin) == service.Look([])


def database(name: str) -> Database:
    return Database(meta=new_meta("db", Principal("ann", "sysadmin"), datetime.now(UTC)), name=name)


@contextmanager
def stream(url: str, authorization: str, **params: str) -> Iterator[Iterator[dict[str, Any]]]:
    headers = NDJSON | {"Authorization": authorization}
    with (
        httpx2.Client(base_url=url, timeout=10) as client,
        client.stream("GET", "/v1/events", params=params, headers=headers) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        yield (json.loads(line) for line in answer.iter_lines() if line)


def test_a_stream_goes_on_until_its_token_is_revoked(
    admin: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_TOKEN", 0.2), ("_PAUSE", 0.01), ("_LOOK_AGAIN", 0.05), ("_IDLE", 0.3)):
        monkeypatch.setattr(event_stream, name, value)
    monkeypatch.setattr(rest_app, "STREAMS_OF_A_PRINCIPAL", 1)
    put(admin, "databases/d")
    put(admin, "databases/hidden")
    reader = token_of(admin, "some", on("usage", "database", "d"))
    with serving(rest_app.create_app(fresh.env)) as url, stream(url, reader) as items:
        begin = next(items)["position"]
        refused = httpx2.get(f"{url}/v1/events", headers={"Authorization": reader}, timeout=10)
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
        put(admin, "databases/d", {"comment": "1"})
        put(admin, "databases/hidden", {"comment": "1"})
        change = next(one for one in items if "type" in one)  # a busy machine may send idle ones before
        assert (change["type"], change["kind"], change["name"]) == ("changed", "database", "d")
        idle = next(items)
        assert idle.keys() == {"position"}
        assert idle["position"] > change["id"] > begin, "also behind what it does not see"
        put(admin, "roles/some", {"grants": [on("usage", "database", "hidden")]})
        reset = next(one for one in items if "reset" in one)
        assert "rights" in reset["reset"]["reason"]
        put(admin, "databases/d", {"comment": "2"})
        put(admin, "databases/hidden", {"comment": "2"})
        assert next(one for one in items if "id" in one)["name"] == "hidden"
        assert admin.delete("/v1/tokens/some_token").status_code == 204
        end = next(one for one in items if "error" in one)
        assert end["error"]["code"] == "unauthenticated"
        assert next(items, None) is None


def test_a_stream_that_has_lasted_long_ends(admin: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client connects again; it may reach another server then."""
    monkeypatch.setattr(event_stream, "LONGEST", 0.0)
    items = admin.get("/v1/events", headers=NDJSON).text.splitlines()
    assert json.loads(items[-1]) == {"end": {}}


def test_a_stream_does_not_hold_up_the_end_of_the_server(admin: TestClient, fresh: Any) -> None:
    fresh.env.changed.end()
    items = admin.get("/v1/events", headers=NDJSON).text.splitlines()
    assert json.loads(items[-1]) == {"end": {}}


def test_tokens_are_shown_to_their_account_and_to_those_who_manage_members(
    fresh: Any, admin: TestClient
) -> None:
    theirs, others = (token_of(admin, name) for name in ("theirs", "others"))
    manager = token_of(admin, "manager", {"privilege": "manage_members", "on": "organization"})
    readers = [Feed(admin, one, kind="api_token") for one in (theirs, others, manager)]
    body = {"account": "theirs_account", "scope": "read"}
    assert admin.post("/v1/tokens/ci", json=body).status_code == 201
    assert admin.post("/v1/tokens/ci:rotate", json={"grace_minutes": 60}).status_code < 300
    assert readers[2].read() == [("created", "ci"), ("changed", "ci")]
    assert admin.delete("/v1/tokens/ci").status_code == 204
    assert [reader.read() for reader in readers] == [
        [("created", "ci"), ("changed", "ci"), ("deleted", "ci")],
        [],
        [("deleted", "ci")],
    ]


def test_uses_of_a_token_are_no_changes(fresh: Any, admin: TestClient) -> None:
    reader = Feed(admin)
    with fresh.units() as unit:
        row = unit.tokens.list()[0]
        unit.tokens.note_use(row.id, datetime.now(UTC))
        unit.tokens.delete(row.id)
        unit.tokens.add(row)  # what each start of a server does with the administrator's
        unit.commit()
    assert reader.read() == []


def test_savepoints_are_shown_to_those_who_may_operate_the_query(fresh: Any, admin: TestClient) -> None:
    put(admin, "databases/demo")
    put(admin, "stores/k", {"kafka": KAFKA})
    put(admin, "stores/k/entities/t", {"kafka": {"partitions": 1, "replicas": 1}})
    put(admin, "relations/demo.public.r", RELATION)
    put(admin, "queries/q", {"sql": "CREATE STREAM o AS SELECT * FROM r", "database": "demo", "store": "k"})
    operator = Feed(admin, token_of(admin, "operator", on("operate", "query", "q")), kind="savepoint")
    watcher = Feed(admin, token_of(admin, "watcher", on("monitor", "query", "q")), kind="savepoint")
    owner = Feed(admin, kind="savepoint")
    with fresh.units() as unit:
        query = unit.queries.find("q")
        savepoint = Savepoint(
            meta=new_meta("svp", Principal("admin", "sysadmin"), datetime.now(UTC)),
            name="sp",
            query="q",
            query_id=query.meta.id,
            query_generation=1,
            sql=query.sql,
            job={},
            checkpoint_generation=1,
        )
        unit.savepoints.add(savepoint)
        unit.commit()
    with fresh.units() as unit:
        unit.savepoints.update(replace(savepoint, batch=1))  # no change that the feed shows
        unit.commit()
    with fresh.units() as unit:
        unit.savepoints.update(replace(savepoint, state=SavepointState.READY))
        unit.commit()
    assert operator.read() == owner.read() == [("created", "sp"), ("state", "sp")]
    with fresh.units() as unit:
        unit.savepoints.delete(savepoint.meta.id)
        unit.commit()
    assert owner.read() == [("deleted", "sp")]
    assert (operator.read(), watcher.read()) == ([], [])
