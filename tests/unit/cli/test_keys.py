"""``leat admin add-key|rotate-key|remove-key``, beside a server that keeps the catalog open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from leatstream.model.objects import Meta
from leatstream.model.registered import Secret
from leatstream.storage import key_rotation
from leatstream.storage.key_file import read_key_ring, use_key
from leatstream.storage.migrate import migrate
from leatstream.storage.secret_box import KeyFileBox, key_of, open_secret_box
from leatstream.storage.sharing import prove_keys
from leatstream.storage.unit_of_work import SqlUnits, open_units

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result

    Leat = Callable[..., Result]

NOW = datetime(2026, 11, 26, tzinfo=UTC)
COUNT = 250  # more than two batches


@dataclass
class Server:
    """What a running server holds."""

    units: SqlUnits
    box: KeyFileBox
    keys: Path

    def put(self, name: str, value: str) -> str:
        meta = Meta(
            id=f"sec_{name}",
            generation=1,
            created_at=NOW,
            updated_at=NOW,
            created_by="ann",
            owner="sysadmin",
        )
        secret = Secret(meta=meta, name=name, kind="generic_string")
        with self.units() as unit:
            unit.named_secrets.add(secret)
            unit.secrets.put(secret.reference, self.box.seal(secret.reference, value))
            unit.commit()
        return secret.reference

    def rows(self) -> list[tuple[str, bytes]]:
        with self.units(write=False) as unit:
            return list(unit.sealed_values("", 10_000))

    def values(self) -> dict[str, str]:
        return {reference: self.box.open(reference, envelope) for reference, envelope in self.rows()}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("LEATSTREAM_DATA_DIR", str(tmp_path))
    url, keys = f"sqlite:///{tmp_path / 'catalog.db'}", tmp_path / "keys.json"
    migrate(url)
    made = Server(open_units(url), open_secret_box(keys), keys)
    prove_keys(made.units, made.box)
    yield made
    made.units.close()


def fill(server: Server, count: int = COUNT) -> None:
    with server.units() as unit:
        for number in range(count):
            reference = f"secret://catalog/str_{number:03}/sasl.password"
            unit.secrets.put(reference, server.box.seal(reference, f"value {number}"))
        unit.commit()


def test_the_three_steps_while_a_server_runs(leat: Leat, server: Server) -> None:
    fill(server)
    server.put("one", "s3cret")
    before, old = server.values(), server.box.present.ring.primary
    new = leat("admin", "add-key").out.strip()
    assert server.box.present.ring.primary == old, "no other server may have the key yet"
    done = leat("admin", "rotate-key", "-o", "json")
    counts = {"key": new, "wrapped": COUNT + 2, "already_wrapped": 0, "unowned": 0, "left": {}}
    assert (done.status, json.loads(done.out)) == (0, counts)
    assert f"may be removed: leat admin remove-key {old}" in " ".join(done.err.split())
    assert {key_of(envelope) for _, envelope in server.rows()} == {new}
    server.put("two", "sealed by the server with the new key")
    assert leat("admin", "remove-key", old).status == 0
    assert list(read_key_ring(server.keys).keys) == [new]
    assert server.values().items() >= before.items()
    again = json.loads(leat("admin", "rotate-key", "-o", "json").out)
    assert (again["wrapped"], again["already_wrapped"]) == (0, COUNT + 3)
    with server.units(write=False) as unit:
        events = {(event.operation, event.kind, event.name) for event in unit.audit.page(limit=10)}
    assert events == {("rotate", "key", new)}


def test_a_run_that_is_cut_off_is_completed(
    leat: Leat, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server)
    before = server.values()
    leat("admin", "add-key")
    whole, calls = key_rotation._event, []

    def cut_off(key_id: str) -> Any:
        calls.append(key_id)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(key_id)

    monkeypatch.setattr(key_rotation, "_event", cut_off)
    assert leat("admin", "rotate-key").status == 130
    assert sorted(key_rotation.count_by_key(server.units).values()) == [100, COUNT + 1 - 100]
    assert server.values() == before
    monkeypatch.setattr(key_rotation, "_event", whole)
    done = json.loads(leat("admin", "rotate-key", "-o", "json").out)
    assert (done["wrapped"], done["already_wrapped"]) == (COUNT + 1 - 100, 100)
    assert server.values() == before


def test_a_value_that_no_key_opens_is_named_and_nothing_changes(
    leat: Leat, server: Server, tmp_path: Path
) -> None:
    server.put("fine", "v")
    lost = open_secret_box(tmp_path / "lost.json")
    server.box, kept = lost, server.box
    server.put("broken", "s3cret")
    server.box = kept
    fill(Server(server.units, lost, server.keys), 1)  # of no object: nobody misses it
    before, old = server.rows(), server.box.present.ring.primary
    leat("admin", "add-key")
    done = leat("admin", "rotate-key")
    assert done.status == 1
    text = " ".join(done.err.split())
    assert (
        f"Secret broken opens with no key of the key ring: it was encrypted with key {lost.present.ring.primary}"
        in text
    )
    assert ("str_000" in text, "s3cret" in text) == (False, False)
    assert (server.rows(), server.box.present.ring.primary) == (before, old)
    with server.units() as unit:
        reference = "secret://catalog/sec_broken/value"
        unit.secrets.put(reference, server.box.seal(reference, "given again"))
        unit.commit()
    done = leat("admin", "rotate-key", "-o", "json")
    assert (done.status, json.loads(done.out)["unowned"]) == (0, 1)


def test_a_key_that_is_not_configured_or_needed_is_refused(leat: Leat, server: Server) -> None:
    old = server.box.present.ring.primary
    unknown = leat("admin", "rotate-key", "k00000000")
    assert (unknown.status, "has no key k00000000" in unknown.err) == (3, True)
    assert leat("admin", "remove-key", old).status == 5, "values need it"
    new = leat("admin", "add-key").out.strip()
    use_key(server.keys, new)
    used = leat("admin", "remove-key", old)
    assert (used.status, f"1 stored value is encrypted with key {old}" in used.err) == (5, True)
    primary = leat("admin", "remove-key", new)
    assert (primary.status, "is the primary" in primary.err) == (5, True)
    assert len(read_key_ring(server.keys).keys) == 2


def test_a_server_with_another_primary_is_noticed(
    leat: Leat, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is another one, which nobody has changed: each pass leaves something to the next."""
    other = tmp_path / "other.json"
    other.write_bytes(server.keys.read_bytes())
    other.chmod(0o600)
    elsewhere = KeyFileBox(other)
    leat("admin", "add-key")
    whole = key_rotation._pass

    def disturbed(*args: Any) -> int:
        found = whole(*args)
        with server.units() as unit:
            unit.secrets.put("secret://x", elsewhere.seal("secret://x", "v"))
            unit.commit()
        return found

    monkeypatch.setattr(key_rotation, "_pass", disturbed)
    done = leat("admin", "rotate-key", "-o", "json")
    assert (done.status, json.loads(done.out)["left"]) == (1, {elsewhere.present.ring.primary: 1})
    assert "Give every server this key file" in " ".join(done.err.split())


def test_without_a_catalog_or_a_key_file(leat: Leat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEATSTREAM_DATA_DIR", str(tmp_path / "nothing"))
    assert "cannot be read" in leat("admin", "rotate-key").err
    (tmp_path / "nothing").mkdir()
    open_secret_box(tmp_path / "nothing" / "keys.json")
    missing = leat("admin", "rotate-key")
    assert (missing.status, "is missing" in missing.err) == (1, True)
    assert not (tmp_path / "nothing" / "catalog.db").exists()
