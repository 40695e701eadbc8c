"""What an interactive SELECT hands over in one call."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.errors import JobError
from leatstream_jobs.driver.selecting import Reader
from leatstream_jobs.runtime.protocol import Client, Contact

_MOST = 1024 * 1024  # bytes of a body, in the API's gate


class Gate:
    """Takes rows as the API's gate does."""

    def __init__(self, most: int = _MOST) -> None:
        self.most = most
        self.bodies: list[bytes] = []

    def send(self, method: str, path: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        self.bodies.append(body)
        fits = len(body) <= self.most
        return (200, b'{"accepted": true}') if fits else (413, b'{"code": "too-large"}')

    def rows(self) -> list[str]:
        return [text for body in self.bodies for _, text in json.loads(body)["rows"]]


def hand_over(gate: Gate, *texts: str) -> None:
    spec: Any = SimpleNamespace(query_id="stm_1", sink=SimpleNamespace(key_columns=()))
    client = Client(gate, "d", Contact(60.0))  # type: ignore[arg-type]
    reader = Reader(SimpleNamespace(client=client), spec)  # type: ignore[arg-type]
    rows = [SimpleNamespace(key=None, value=text) for text in texts]
    frame: Any = SimpleNamespace(toLocalIterator=lambda: iter(rows))
    reader.write_batch(frame)


@pytest.mark.parametrize("text", ["日" * 200_000, "é" * 400_000, "x" * 900_000, '"' * 400_000])
def test_a_long_row_of_any_script_fits(text: str) -> None:
    gate = Gate()
    hand_over(gate, text, "{}", text)
    assert gate.rows() == [text, "{}", text]


@pytest.mark.parametrize("text", ["日" * 310_000, '"' * 500_000])
def test_a_row_that_does_not_fit_is_told(text: str) -> None:
    gate = Gate()
    with pytest.raises(JobError, match="longer than 900 KiB as it is sent"):
        hand_over(gate, "{}", text)
    assert all(len(body) <= _MOST for body in gate.bodies)


def test_rows_of_any_script_share_calls() -> None:
    """Each call stays far below the bound."""
    gate = Gate()
    texts = ["日" * 20_000] * 30
    hand_over(gate, *texts)
    assert gate.rows() == texts
    assert max(map(len, gate.bodies)) < 300 * 1024


def test_a_body_too_large_for_the_api_is_not_sent_again() -> None:
    gate = Gate(most=10_000)
    with pytest.raises(JobError, match="takes less than 1 MiB"):
        hand_over(gate, "x" * 20_000)
    assert len(gate.bodies) == 1
