"""A rotated secret reaches what uses it: by one command, and by the attempt after a refused login."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import fakes
import pytest
from account_clients import account_client
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.errors import SecretStoreError
from leatstream.model.outside_secrets import OutsideReference
from leatstream.rest.app import create_app
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Principal
from leatstream.services.environment.outside_secrets import OutsideSecrets
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.reconcile.reconciler import reconcile_all

ANN = Principal("ann", "sysadmin")
SET_UP = """CREATE SECRET pw WITH ('type' = generic_string, {});
CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'b:1', 'kafka.sasl.hash_function' = PLAIN,
'kafka.sasl.username' = 'u', 'kafka.sasl.password' = "pw"); CREATE DATABASE d; USE DATABASE d;
CREATE STREAM a (n BIGINT) WITH ('topic' = 'a', 'store' = 'k', 'value.format' = 'json');
CREATE STREAM b AS SELECT * FROM a QUERY WITH ('query.name' = 'q')"""
OUTSIDE = "'reference' = 'secret://env/PW'"
REFUSED = {"code": "job-failed", "condition": "store-auth-failed", "detail": "no", "retryable": False}


class Vault:
    """A provider whose value a test may change."""

    def __init__(self) -> None:
        self.value: str | None = "first"

    def permits(self, reference: OutsideReference) -> str | None:
        return None

    def read(self, reference: OutsideReference) -> str:
        if self.value is None:
            raise SecretStoreError("secret-store-unreachable", "Nobody is there.")
        return self.value


@pytest.fixture
def vault(fresh: Any) -> Vault:
    made = Vault()
    fresh.env.outside = OutsideSecrets({"env": made})
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 2, "topic.replicas": 1})
    fresh.drivers.tokens.update({f"d{n}": "t" for n in range(1, 9)})
    return made


def run(world: Any, client: TestClient, secret: str) -> None:
    answer = client.post("/v1/statements", json={"sql": SET_UP.format(secret), "store": "k"})
    assert answer.status_code == 200, answer.text
    reconcile_all(world.env)


def query(world: Any) -> Any:
    return queries.get_query(world.env, ANN, "q")


def beat(world: Any, state: str, **more: Any) -> None:
    found = query(world)
    report = {"query_id": found.meta.id, "attempt": found.status.attempt, "state": state, **more}
    report["fencing_token"] = drivers.fencing_token(found)
    drivers.heartbeat(world.env, found.status.driver_id, report)


def fetched(client: TestClient, world: Any) -> Any:
    """What the query's driver gets for its store's password."""
    with world.env.open_unit(write=False) as unit:
        references = sorted(drivers.build_spec(world.env, unit, query(world)).references())
    driver = query(world).status.driver_id
    path, headers = f"/v1/drivers/{driver}/secrets", {"Authorization": "Bearer t"}
    return client.post(path, json={"references": references}, headers=headers)


def test_a_driver_gets_what_the_secret_store_has_now(vault: Vault, fresh: Any, client: TestClient) -> None:
    run(fresh, client, OUTSIDE)
    assert "first" not in str(query(fresh).job)
    vault.value = "second"
    assert list(fetched(client, fresh).json()["values"].values()) == ["second"]
    vault.value = None
    away = fetched(client, fresh)
    assert (away.status_code, away.json()["code"]) == (503, "secret-store-unreachable")
    error = {"code": "job-failed", "detail": "x", "condition": away.json()["code"], "retryable": True}
    beat(fresh, "failed", error=error)
    assert (query(fresh).status.state, query(fresh).status.outages) == ("pending", 1)
    shown = client.get("/v1/secrets/pw").json()
    assert (shown["resolve_error"], shown["resolved_at"] is not None) == ("Nobody is there.", True)


def test_a_refused_login_is_tried_once_more_with_the_present_value(
    vault: Vault, fresh: Any, client: TestClient
) -> None:
    """Not oftener: many wrong logins lock accounts."""
    run(fresh, client, OUTSIDE)
    beat(fresh, "failed", error=REFUSED)
    assert (query(fresh).status.state, query(fresh).status.restarts) == ("pending", 1)
    later = datetime.now(UTC) + timedelta(seconds=60)
    fresh.env.clock = SimpleNamespace(now=lambda: later)
    reconcile_all(fresh.env)
    beat(fresh, "failed", error=REFUSED)
    assert query(fresh).status.state == "failed"


def test_a_value_of_the_catalog_is_not_tried_again(vault: Vault, fresh: Any, client: TestClient) -> None:
    run(fresh, client, "'secret_string' = 'own'")
    beat(fresh, "failed", error=REFUSED)
    assert query(fresh).status.state == "failed"


@pytest.mark.parametrize("secret", [OUTSIDE, "'secret_string' = 'own'"])
def test_one_command_restarts_what_uses_it(vault: Vault, fresh: Any, client: TestClient, secret: str) -> None:
    run(fresh, client, secret)
    beat(fresh, "running")
    planned = client.post("/v1/secrets/pw:apply?dry_run=true")
    assert query(fresh).status.observed_generation == 1, "a dry run changes nothing"
    with fresh.env.open_unit(write=False) as unit:
        assert unit.stores.find("k").secret_changes == 0
    answer = client.post("/v1/secrets/pw:apply")
    assert (planned.status_code, planned.json()) == (200, answer.json())
    assert (answer.status_code, answer.json()) == (202, {"stores": ["k"], "queries": ["q"], "left": 0})
    assert query(fresh).status.observed_generation == 0, "the job is taken down and started again"
    assert client.post("/v1/secrets/nope:apply").status_code == 404
    with fresh.env.open_unit(write=False) as unit:
        assert unit.stores.find("k").secret_changes == 1


def test_nothing_is_restarted_without_a_value(vault: Vault, fresh: Any, client: TestClient) -> None:
    run(fresh, client, OUTSIDE)
    beat(fresh, "running")
    vault.value = None
    assert client.post("/v1/secrets/pw:apply").status_code == 503
    assert query(fresh).status.observed_generation == 1


def test_who_may_not_operate_a_query_leaves_it(vault: Vault, fresh: Any, client: TestClient) -> None:
    run(fresh, client, OUTSIDE)
    app = create_app(fresh.env)
    admin = TestClient(app, headers={"Authorization": f"Bearer {fakes.administrator(fresh)}"})
    rotator, user = (
        account_client(admin, name, {"privilege": privilege, "on": "secret", "name": "pw"})
        for name, privilege in (("rotator", "modify"), ("user", "usage"))
    )
    refused = user.post("/v1/secrets/pw:apply")
    assert (refused.status_code, "MODIFY on secret pw" in refused.json()["detail"]) == (403, True)
    answer = rotator.post("/v1/secrets/pw:apply")
    assert (answer.status_code, answer.json()) == (202, {"stores": [], "queries": [], "left": 1})
    assert query(fresh).status.observed_generation == 1
    with fresh.env.open_unit(write=False) as unit:
        store = unit.stores.find("k")
    assert (store.secret_changes, store.state) == (1, "ready"), "it is asked, though the caller sees no store"
