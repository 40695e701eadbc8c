"""Answers that go on for long: they end with the token, or with a privilege of its role."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.requests import Request

from leatstream.errors import AccessError, CatalogAway
from leatstream.model.access import Grant, Privilege, Target
from leatstream.rest import accepted
from leatstream.rest.streams import EVENTS, NDJSON
from leatstream.services.environment import Principal
from leatstream.services.environment.rights import Rights, rights_of

STORE, ALL = Target("store", "k"), Target("relation", None, "database", "d")
PART = Target("store", "k", entities="o*")
BEFORE = [
    Grant(Privilege.USAGE, STORE),
    Grant(Privilege.SELECT, ALL),
    Grant(Privilege.READ_ENTITY, PART),
]


def rights(*grants: Grant, role: str = "r") -> Rights:
    """Of a role with these grants."""
    return rights_of([role], grants)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepted, "LOOK_AGAIN", 0.0)


def answer(
    *then: Rights | Exception, media_type: str = NDJSON, chunk: bytes = b"%d\n"
) -> tuple[list[bytes], bool]:
    """The chunks of an answer whose caller has these rights, one after another; whether it was closed."""
    closed, left = False, list(then)

    async def chunks() -> AsyncGenerator[bytes, None]:
        nonlocal closed
        try:
            for index in range(len(then)):
                yield chunk % index if chunk else chunk
        finally:
            closed = True

    async def again() -> Principal:
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return Principal("ann", "r", found)

    async def read() -> list[bytes]:
        scope: dict[str, Any] = {
            "type": "http",
            "leatstream.principal": Principal("ann", "r", rights(*BEFORE)),
            "leatstream.authenticate": again,
        }
        return [one async for one in accepted.while_accepted(Request(scope), chunks(), media_type)]

    return asyncio.run(read()), closed


def test_it_goes_on_while_nothing_is_lost() -> None:
    more = [*BEFORE, Grant(Privilege.MODIFY, STORE)]
    administrator = rights_of(["orgadmin", "r"], BEFORE)
    assert answer(rights(*BEFORE), rights(*more), administrator) == ([b"0\n", b"1\n", b"2\n"], True)


@pytest.mark.parametrize("media_type", [NDJSON, EVENTS])
def test_it_ends_with_its_token(media_type: str) -> None:
    ended = AccessError("unauthenticated", "The token has expired.")
    (first, last), closed = answer(rights(*BEFORE), ended, rights(*BEFORE), media_type=media_type)
    assert (first, closed) == (b"0\n", True)
    assert b'"code":"unauthenticated"' in last
    assert last.startswith(b"event: error\n") is (media_type == EVENTS)


@pytest.mark.parametrize("lost", BEFORE)
def test_it_ends_with_a_lost_privilege(lost: Grant) -> None:
    chunks, _ = answer(rights(*(one for one in BEFORE if one is not lost)))
    assert len(chunks) == 1
    assert b'"code":"permission-denied"' in chunks[0]


def test_a_lost_role_is_noticed_after_a_gain() -> None:
    gained = rights_of(["r", "other"], BEFORE)
    (first, last), _ = answer(gained, rights(*BEFORE))
    assert (first, b"permission-denied" in last) == (b"0\n", True)


def test_a_catalog_that_is_away_ends_nothing() -> None:
    assert len(answer(CatalogAway("no answer"), rights(*BEFORE))[0]) == 2


def test_a_catalog_that_is_away_is_not_asked_at_each_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[None] = []

    async def again() -> Principal:
        asked.append(None)
        raise CatalogAway("no answer")

    async def look() -> None:
        monkeypatch.setattr(accepted, "LOOK_AGAIN", 0.5)
        watch = accepted.Watch(again, Principal("ann", "r", rights(*BEFORE)))
        await asyncio.sleep(0.6)
        await watch.look()
        await watch.look()

    asyncio.run(look())
    assert len(asked) == 1


def test_a_silent_stream_ends_with_its_token() -> None:
    """An empty chunk is a step without a record: it is no end of an answer, and not sent."""
    ended = AccessError("unauthenticated", "The token has expired.")
    (last,), closed = answer(rights(*BEFORE), rights(*BEFORE), ended, chunk=b"")
    assert (b"unauthenticated" in last, closed) == (True, True)
