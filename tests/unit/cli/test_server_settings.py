"""What a server is configured with by its environment: what cannot be used is told by its variable."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from leatstream.cli.serving import reachable, read_settings
from leatstream.dev.api_server import listen
from leatstream.errors import StackError
from leatstream.storage.engine import make_engine


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEATSTREAM_PORT", "abc"),
        ("LEATSTREAM_SPARK_CONF", "spark.a=b"),
        ("LEATSTREAM_LEASE_SECONDS", "0"),
        ("LEATSTREAM_LAUNCHER", "nomad"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(StackError, match=name):
        read_settings()


@pytest.mark.parametrize("url", ["postgres:/x:secret@h/d", "postgresql://u:secret@h:abc/d"])
def test_a_url_that_cannot_be_read_is_named_and_not_told(url: str) -> None:
    with pytest.raises(StackError, match="LEATSTREAM_CATALOG_URL") as caught:
        make_engine(url)
    assert "secret" not in caught.value.detail


def test_a_taken_port_is_told_with_what_sets_another() -> None:
    with listen(0) as taken, pytest.raises(StackError) as caught:
        listen(taken.getsockname()[1], other="LEATSTREAM_PORT")
    assert caught.value.code == "port-taken"
    assert "LEATSTREAM_PORT" in str(caught.value.faults[0].hint)
    assert "--port" not in str(caught.value.faults[0].hint)


def test_a_host_of_another_machine_is_no_taken_port() -> None:
    with pytest.raises(StackError, match=r"cannot listen on '192\.0\.2\.1'") as caught:
        listen(0, "192.0.2.1")
    assert caught.value.code == "part-failed"


@pytest.mark.parametrize(
    ("host", "clients"),
    [("127.0.0.1", ["127.0.0.1"]), ("::1", ["::1"]), ("::", ["::1", "127.0.0.1"]), ("", ["127.0.0.1"])],
)
def test_a_server_listens_on_either_internet(host: str, clients: list[str]) -> None:
    if ":" in host and not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6 on this machine")
    with listen(0, host) as listener:
        for client in clients:
            socket.create_connection((client, listener.getsockname()[1]), timeout=5).close()


@pytest.mark.parametrize(
    ("host", "told"), [("", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "[::1]"), ("a.example", "a.example")]
)
def test_drivers_are_told_where_the_server_is(host: str, told: str) -> None:
    assert reachable(host) == told
