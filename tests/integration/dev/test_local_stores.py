"""The stores of ``leat dev --iceberg`` and ``--clickhouse``: declared as they are, and kept from run to run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deadlines import patient

from leatstream.connectors.entities import NewRecord
from leatstream.connectors.registry import open_connector
from leatstream.dev import local_server
from leatstream.dev.local_stores import LOCAL_STORES, declaration, local_store
from leatstream.errors import StackError
from leatstream.model.extras import install_extra
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

pytestmark = pytest.mark.core


@pytest.mark.parametrize("name", ["iceberg", "clickhouse"])
def test_rows_and_the_address_are_there_at_the_next_start(tmp_path: Path, name: str) -> None:
    addresses, identities, seconds = set(), set(), patient(20.0)
    for run in range(2):
        server = local_store(name, tmp_path, tmp_path)
        try:
            server.start()
            addresses.add(server.endpoint)
            store = declaration(name, server.endpoint)
            connector = open_connector(store.kind, store.name, store.config, store.secrets)
            if run == 0:
                connector.create_table("t", [Column("id", parse_type("BIGINT"))], (), seconds)
            connector.write_records("t", [NewRecord(None, json.dumps({"id": run}).encode())], seconds)
            identities.add(connector.incarnation("t", seconds))
            found = connector.read_records("t", from_beginning=True, limit=None, idle_timeout=1.0)
            ids = sorted(json.loads(record.value or b"")["id"] for record in found if record is not None)
            assert ids == list(range(run + 1))
        finally:
            server.stop()
    assert (len(addresses), len(identities)) == (1, 1)
    assert identities.isdisjoint({None, "t"})


@pytest.mark.parametrize("name", LOCAL_STORES)
def test_what_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setattr(local_server.importlib.util, "find_spec", lambda _: None)
    server = local_store(name, tmp_path, tmp_path)
    with pytest.raises(StackError) as caught:
        server.start()
    assert caught.value.code == "tool-missing"
    assert caught.value.faults[0].hint == install_extra(server.extra)
    assert server.needs[0] in caught.value.detail
