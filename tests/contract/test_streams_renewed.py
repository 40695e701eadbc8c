"""What follows a stream goes on when its token of ``leat login`` ends: no line is lost, and none comes twice."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from oidc_issuer import AUDIENCE, CLIENT, OidcIssuer
from serving import eventually, serving

from leatstream.cli import app as cli_app
from leatstream.cli import following
from leatstream.cli.client import Client, ProblemAnswer
from leatstream.cli.connection import find_connection
from leatstream.cli.sign_ins import signed_in
from leatstream.connectors.entities import Record
from leatstream.identity.issuers import Issuers
from leatstream.identity.settings import Issuer
from leatstream.rest import accepted, log_lines
from leatstream.services.environment import Principal
from leatstream.services.selects import interactive

RULES = [{"claim": "groups", "equals": "data", "role": "sysadmin", "scope": "admin"}]
RECORDS = "/v1/stores/k/entities/pageviews"
# As in a process that ends, nobody closes the clients.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Scene:
    """Somebody who is signed in, at a server whose clock the test moves."""

    def __init__(self, world: Any, issuer: OidcIssuer, url: str) -> None:
        self.world, self.issuer, self.url = world, issuer, url
        self.passed = 0.0

    def client(self) -> Client:
        return Client(signed_in(find_connection(self.url)))

    def end_token(self) -> None:
        """Let the token of now have ended by the server's clock; the next one is good for an hour more."""
        self.passed += self.issuer.lifetime + 60
        self.issuer.lifetime = int(self.passed) + 3600

    def renewals(self) -> int:
        return self.issuer.asked["/token"] - 1  # the first one was the sign-in

    def add(self, partition: int | str, *numbers: int, at: int = 1 << 50) -> None:
        """Records with these offsets and values, by default later than any request."""
        there = self.world.cluster.records.setdefault("pageviews", [])
        there += [Record(None, str(n).encode(), partition, n, at) for n in numbers]


@pytest.fixture
def scene(fresh: Any, pageviews: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("LEATSTREAM_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(accepted, "LOOK_AGAIN", 0.0)
    issuer = OidcIssuer()
    issuer.approved = True
    trusted = {"issuer": issuer.url, "audience": AUDIENCE, "client_id": CLIENT, "rules": RULES}
    fresh.cluster.endless = True
    with serving(fresh) as url:
        made = Scene(fresh, issuer, url)
        fresh.env.identities = Issuers(
            [Issuer.model_validate(trusted)], now=lambda: time.time() + made.passed
        )
        monkeypatch.setenv("LEATSTREAM_URL", url)
        assert cli_app.run(("login", "--device")) == 0
        yield made
    issuer.close()


def values(lines: Iterator[str], count: int) -> list[Any]:
    return [json.loads(next(lines))["value"] for _ in range(count)]


def test_a_refused_token_is_renewed_whatever_the_own_clock_says(scene: Scene) -> None:
    client = scene.client()
    assert client.call("GET", "/v1/me")["role"] == "sysadmin"
    scene.end_token()
    assert client.call("GET", "/v1/me")["role"] == "sysadmin"
    assert scene.renewals() == 1
    scene.passed += 1e6  # the next one is refused too
    with pytest.raises(ProblemAnswer) as refusal:
        client.call("GET", "/v1/me")
    assert (refusal.value.problem["code"], scene.renewals()) == ("unauthenticated", 2)


def test_records_go_on_behind_the_last_ones(scene: Scene) -> None:
    scene.add(0, 1)
    lines = following.records(scene.client(), RECORDS, {"from": "beginning"})
    assert values(lines, 1) == [1]
    for number in (2, 3):
        scene.end_token()
        scene.add(0, number)
        scene.add(1, number)  # a partition without a record so far, at first
        assert values(lines, 2) == [number, number]
    assert scene.renewals() == 2
    lines.close()  # type: ignore[attr-defined]


def test_of_new_records_those_between_two_tokens_are_not_lost(scene: Scene) -> None:
    client = scene.client()
    scene.add(0, 1, at=1)
    scene.add(1, 2, at=1)
    asked: list[dict[str, str]] = []
    steps = iter([lambda: scene.add(0, 3), lambda: scene.add(1, 5)])

    def answered(answer: httpx2.Response) -> None:
        """The reading has begun: what comes now is new to it."""
        if answer.status_code == 200 and answer.url.path.endswith("/records"):
            asked.append(dict(answer.url.params))
            next(steps)()

    client._http.event_hooks["response"].append(answered)
    lines = following.records(client, RECORDS, {"from": "latest", "limit": 4})
    assert values(lines, 1) == [3]
    scene.end_token()
    scene.add(1, 4)
    assert values(lines, 2) == [4, 5]
    scene.add(0, 6)
    assert values(lines, 1) == [6]
    assert next(lines, None) is None, "the limit counts all of them"
    first, second = asked
    assert first == {"from": "latest", "limit": "4"}
    assert (second["after"], second["limit"]) == ("0:3", "3")


def test_records_without_numbered_places_are_passed_over_where_they_came_before(scene: Scene) -> None:
    """Such as those of files."""
    scene.add("a.json", 1, 2)
    lines = following.records(scene.client(), RECORDS, {"from": "beginning"})
    assert values(lines, 2) == [1, 2]
    scene.end_token()
    scene.add("b.json", 1)
    scene.add("a.json", 3)
    assert values(lines, 2) == [1, 3]
    lines.close()  # type: ignore[attr-defined]


def test_rows_of_a_select_go_on_with_the_next_one(scene: Scene) -> None:
    scene.world.drivers.tokens["d1"] = "t1"
    client = scene.client()
    answer = client.call(
        "POST", "/v1/statements", body={"sql": "SELECT * FROM demo.public.pageviews LIMIT 5"}
    )
    path = answer["results"][0]["rows"]
    selection = scene.world.env.selections.find(path.split("/")[3])

    def send(sequence: int, *numbers: int) -> None:
        body = {"select": selection.id, "sequence": sequence, "rows": [("+I", str(n)) for n in numbers]}
        assert interactive.take_rows(scene.world.env, "d1", body) == {"directive": "continue"}

    send(1, 1, 2, 3)
    lines = following.rows(client, path, waits=False)
    assert json.loads(next(lines))["row"] == 1
    scene.end_token()
    send(2, 4)
    assert [json.loads(next(lines))["row"] for _ in range(2)] == [2, 3]
    scene.end_token()
    assert json.loads(next(lines))["row"] == 4
    send(3, 5)
    assert json.loads(next(lines))["row"] == 5
    assert json.loads(next(lines))["end"] == {"reason": "limit", "rows": 5}
    assert scene.renewals() >= 1
    eventually(lambda: selection.ended is not None)


def test_a_kept_select_is_for_a_reader_who_may_do_as_much(scene: Scene) -> None:
    scene.world.drivers.tokens["d1"] = "t1"
    env, client = scene.world.env, scene.client()
    answer = client.call("POST", "/v1/statements", body={"sql": "SELECT * FROM demo.public.pageviews"})
    selection = env.selections.find(answer["results"][0]["rows"].split("/")[3])
    owner = Principal(selection.owner, "sysadmin")
    rows = interactive.read_rows(env, owner, selection.id, interactive.Limits())
    next(rows)
    with interactive.kept(env, selection.id, owner):
        rows.close()  # type: ignore[attr-defined]
    assert selection.ended is None
    with pytest.raises(Exception, match="has lost a privilege"):
        interactive.read_rows(env, replace(owner, role="reader"), selection.id, interactive.Limits())
    again = interactive.read_rows(env, owner, selection.id, interactive.Limits())
    next(again)
    again.close()  # type: ignore[attr-defined]
    assert selection.ended is not None, "a reader that leaves ends it"


def test_log_lines_go_on_behind_the_last_ones(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_PAUSE", 0.01)
    client = scene.client()
    sql = "CREATE STREAM s AS SELECT * FROM demo.public.pageviews"
    client.call("PUT", "/v1/queries/q", body={"sql": sql, "database": "demo", "store": "k"})

    def keep(*lines: str) -> None:
        with scene.world.units() as unit:
            query = unit.queries.find("q")
            unit.queries.update(replace(query, status=replace(query.status, log_tail=lines)))
            unit.commit()

    keep("a", "b", "c", "c")
    lines = following.log_lines(client, "/v1/queries/q", 2)
    assert [next(lines), next(lines)] == ["c", "c"]
    keep("c", "c", "d")
    assert next(lines) == "d"
    for line in ("e", "f"):
        scene.end_token()
        keep("c", "d", "e", *(["f"] if line == "f" else []))
        assert next(lines) == line
    assert scene.renewals() == 2
    lines.close()  # type: ignore[attr-defined]
