"""How new sinks are keyed: by the record they come from, by columns, or by their primary key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from leatstream.errors import RequestError
from leatstream.model.names import Fqn
from leatstream.model.objects import Column, Meta, Origin, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.plan.logical import Aggregation, Window
from leatstream.services.planning.sink_formats import sink_formats
from leatstream.sql.relation_properties import read_relation_properties

NOW = datetime(2026, 1, 1, tzinfo=UTC)
META = Meta(id="r", generation=1, created_at=NOW, updated_at=NOW, created_by="admin", owner="admin")
COLUMNS = tuple(
    Column(n, parse_type(t)) for n, t in {"k": "VARCHAR", "Id": "BIGINT", "d": "DATE", "n": "BIGINT"}.items()
)
LEFT = Relation(
    meta=META,
    fqn=Fqn("demo", "public", "s"),
    kind=RelationKind.STREAM,
    columns=COLUMNS,
    store="kafka",
    entity="s",
    value_format="json",
    key_format="primitive",
    key_type="VARCHAR",
)
APPEND = Aggregation((), Window("tumble", 1000, 1000), False, False)


def formats(aggregation: Aggregation | None, *, exact: bool = True, **given: str) -> dict[str, Any]:
    changelog = aggregation is not None and aggregation.update
    named = {name.replace("_", "."): value for name, value in given.items()}
    read = read_relation_properties(named, changelog=changelog)
    return sink_formats(read, LEFT, aggregation, COLUMNS, {}, exact=exact)


def changelog(*keys: str) -> Aggregation:
    return Aggregation(keys, None, True, False)


def test_rows_keep_the_left_most_key() -> None:
    found = formats(None)
    assert {k: (v.value, v.origin, v.source) for k, v in found.items()} == {
        "value.format": ("json", Origin.LEFT_MOST_SOURCE, "demo.public.s"),
        "key.format": ("primitive", Origin.LEFT_MOST_SOURCE, "demo.public.s"),
        "key.type": ("VARCHAR", Origin.LEFT_MOST_SOURCE, "demo.public.s"),
    }
    assert formats(None, key_format="primitive", key_columns="n").keys() == {"value.format", "key.format"}


def test_groups_of_a_stream_have_the_key_that_is_asked_for() -> None:
    assert formats(APPEND).keys() == {"value.format"}
    assert formats(APPEND, key_format="primitive", key_columns="k")["key.format"].value == "primitive"
    with pytest.raises(RequestError, match=r"key to pass on"):
        formats(APPEND, key_format="primitive")
    with pytest.raises(RequestError, match="not a column"):
        formats(APPEND, key_format="primitive", key_columns="x")


@pytest.mark.parametrize(
    ("keys", "given", "wanted"),
    [
        (("k",), {}, ("primitive", "default", "VARCHAR", "k")),
        (("Id",), {}, ("primitive", "default", "BIGINT", '"Id"')),
        (("d",), {}, ("json", "default", "STRUCT<d DATE>", "d")),
        (("Id", "k"), {}, ("json", "default", 'STRUCT<"Id" BIGINT, k VARCHAR>', '"Id", k')),
        (("k",), {"key_format": "json"}, ("json", "explicit", "STRUCT<k VARCHAR>", "k")),
    ],
)
def test_a_changelog_has_its_primary_key(
    keys: tuple[str, ...], given: dict[str, str], wanted: tuple[str, ...]
) -> None:
    found = formats(changelog(*keys), **given)
    key = found["key.format"]
    assert (key.value, key.origin.value, found["key.type"].value, found["key.columns"].value) == wanted


@pytest.mark.parametrize(
    ("keys", "given", "match"),
    [
        (("d",), {"key_format": "primitive"}, "one column of type"),
        (("k", "n"), {"key_format": "primitive"}, "the primary key is k VARCHAR, n BIGINT"),
        (("k",), {"key_format": "json", "key_columns": "k"}, "the primary key is the record's key"),
        (("k",), {"key_type": "VARCHAR"}, "the primary key is the record's key"),
    ],
)
def test_another_key_for_a_changelog_is_refused(
    keys: tuple[str, ...], given: dict[str, str], match: str
) -> None:
    with pytest.raises(RequestError, match=match):
        formats(changelog(*keys), **given)


@pytest.mark.parametrize(
    ("keys", "given", "wanted"),
    [
        (("k",), {}, ("json", "STRUCT<k VARCHAR>")),
        (("Id",), {}, ("json", 'STRUCT<"Id" BIGINT>')),
        (("k",), {"key_format": "primitive"}, ("primitive", "VARCHAR")),
        (("Id",), {"key_format": "primitive"}, None),
    ],
)
def test_a_key_is_text_where_the_store_keeps_a_digest_of_others(
    keys: tuple[str, ...], given: dict[str, str], wanted: tuple[str, str] | None
) -> None:
    if wanted is None:
        with pytest.raises(RequestError, match="keeps a digest of keys that are no text"):
            formats(changelog(*keys), exact=False, **given)
    else:
        found = formats(changelog(*keys), exact=False, **given)
        assert (found["key.format"].value, found["key.type"].value) == wanted
