"""Connections to what is no Oracle, or to one that is slow: the real client against listeners that say only no."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import oracledb
import pytest
from oracle_double import PASSWORD, OracleDouble

from leatstream.connectors.base import Connector
from leatstream.connectors.oracle import session
from leatstream.connectors.oracle.errors import Place
from leatstream.connectors.oracle.settings import OracleConfig
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError

SECRET = {"password": PASSWORD}
REFUSAL = b"(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR=12514)(ERROR_STACK=(ERROR=(CODE=12514)(EMFI=4))))"


@pytest.fixture
def listener() -> Iterator[Callable[[bytes | None], Connector]]:
    """A listener of Oracle's protocol that gives one answer, or none."""
    ended = threading.Event()
    sockets: list[socket.socket] = []

    def start(answer: bytes | None) -> Connector:
        server = socket.create_server(("127.0.0.1", 0))
        sockets.append(server)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                if answer is None:
                    ended.wait(60)
                else:
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        config = {"host": "127.0.0.1", "port": server.getsockname()[1], "service": "shop", "username": "u"}
        return open_connector("oracle", "s", config, SECRET)

    yield start
    ended.set()
    for one in sockets:
        one.close()


def test_a_service_that_is_not_there(listener: Callable[[bytes | None], Connector]) -> None:
    body = struct.pack(">BBH", 0, 0, len(REFUSAL)) + REFUSAL
    packet = struct.pack(">HHBBH", len(body) + 8, 0, 4, 0, 0) + body
    with pytest.raises(StoreError, match="no service shop") as caught:
        listener(packet).test(5)
    assert caught.value.code == "store-rejected"


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_what_is_no_oracle_is_told_in_time(
    listener: Callable[[bytes | None], Connector], answer: bytes | None
) -> None:
    begin = time.monotonic()
    with pytest.raises(StoreError) as caught:
        listener(answer).test(1.5)
    assert caught.value.code == "store-unreachable"
    assert time.monotonic() - begin < 10
    assert PASSWORD not in str(caught.value)


def test_a_connection_that_comes_too_late_is_closed(
    oracle: OracleDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, made = threading.Event(), oracledb.connect

    def slow(**given: Any) -> Any:
        time.sleep(0.6)
        connection = made(**given)
        plain = connection.close
        monkeypatch.setattr(connection, "close", lambda: (plain(), closed.set()))
        return connection

    monkeypatch.setattr(oracledb, "connect", slow)
    connector = open_connector("oracle", "s", oracle.config(), SECRET)
    with pytest.raises(StoreError, match="did not finish logging in"):
        connector.test(0.2)
    assert closed.wait(10)


def test_a_workers_connection_is_kept_until_it_fails(oracle: OracleDouble) -> None:
    config = OracleConfig.model_validate(oracle.config() | {"password": PASSWORD})
    place = Place("s", config.where, "trying")
    with session.transaction(place, config, 7.0) as first:
        pass
    with session.transaction(place, config, 7.0) as second:
        assert second is first
    first.close()
    with session.transaction(place, config, 7.0) as third:
        assert third is not first
    with (
        pytest.raises(StoreError),
        session.transaction(place, config, 7.0) as fourth,
        fourth.cursor() as cursor,
    ):
        cursor.execute("SELECT 1 FROM NOT_THERE")
    assert not session.kept.get((config, 7.0))
