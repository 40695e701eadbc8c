"""The gate before the AWS of a fault run: a strike is felt, and what is behind the gate keeps what it has."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from aws_server import kinesis_of
from fault_aws import AwsPart
from fault_parts import until

pytestmark = pytest.mark.core


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[AwsPart]:
    part = AwsPart(tmp_path)
    part.start()
    yield part
    part.close()


def answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, 5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_strike_breaks_connections_and_loses_nothing(aws: AwsPart) -> None:
    kinesis_of(aws.address).create_stream(StreamName="kept", ShardCount=1)
    address = ("127.0.0.1", int(aws.address.rpartition(":")[2]))
    with socket.create_connection(address, 5) as held:
        held.settimeout(10)
        held.sendall(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n")
        until(lambda: aws.passes(held.getsockname()), 20, "the gate has taken the connection")
        aws.kill()
        assert broken(held)
    assert not answers(address)
    aws.start()
    assert kinesis_of(aws.address).list_streams()["StreamNames"] == ["kept"]


def broken(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
