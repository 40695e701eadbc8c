"""How names, tags and durations are read from requests."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leatstream.errors import CatalogError, RequestError
from leatstream.model.names import Fqn, quote
from leatstream.rest import deps, etag
from leatstream.rest.gate import SLASH
from leatstream.services.environment import Precondition

NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Demo", "demo"),
        ('"Demo"', "Demo"),
        ('"a""b"', 'a"b'),
        ('"日本 語"', "日本 語"),
        ("my-store", "my-store"),
        (f'"a{SLASH}b"', "a/b"),
    ],
)
def test_names(text: str, name: str) -> None:
    """Fold unless quoted."""
    assert deps.read_name(text) == name


@pytest.mark.parametrize("text", ["a.b", '"open', "a b", "a:test", "a\x85b", ""])
def test_no_names(text: str) -> None:
    """Among them the colon that begins a verb."""
    assert re.match(deps.NAME_PATTERN, text) is None
    with pytest.raises(ValueError, match="double quotes"):
        deps.read_name(text)


@given(NAMES)
def test_every_name_has_a_path(name: str) -> None:
    """What quoting writes, the pattern takes and the reader gives back."""
    written = quote(name)
    assert re.match(deps.NAME_PATTERN, written)
    assert deps.read_name(written.replace("/", SLASH)) == name


@given(NAMES, NAMES, NAMES)
def test_every_full_name_has_a_path(database: str, schema: str, name: str) -> None:
    """Three parts in one segment."""
    fqn = Fqn(database, schema, name)
    assert re.match(deps.FQN_PATTERN, str(fqn))
    assert deps.read_fqn(str(fqn).replace("/", SLASH)) == fqn


def test_full_names_are_three_parts() -> None:
    """Anything else is told."""
    with pytest.raises(RequestError):
        deps.read_fqn("a.b")


def test_entities_keep_their_case() -> None:
    """Topics are not SQL names."""
    assert deps.read_entity("My.Topic-1") == "My.Topic-1"
    assert deps.read_entity('"My.Topic"') == "My.Topic"


def test_locations() -> None:
    """Nouns as they are, names quoted and encoded."""
    assert deps.location("databases", "demo") == "/v1/databases/demo"
    assert deps.location("databases", "De/mo", "schemas", "x") == "/v1/databases/%22De%2Fmo%22/schemas/x"
    assert deps.location("stores", "k", "entities", raw="My.T") == "/v1/stores/k/entities/My.T"


@pytest.mark.parametrize(("text", "expected"), [("30s", 30.0), ("500ms", 0.5), ("2m", 120.0), ("7", 7.0)])
def test_durations(text: str, expected: float) -> None:
    """With and without a unit."""
    assert deps.seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1h", "1.5s", "30s "])
def test_no_durations(text: str) -> None:
    """Refused, never guessed."""
    with pytest.raises(RequestError):
        deps.seconds(text)


def test_preconditions() -> None:
    """The headers' forms."""
    assert etag.write(7) == '"7"'
    assert etag.precondition(None, None) == Precondition()
    assert etag.precondition('"7"', None) == Precondition(if_match=7)
    assert etag.precondition(None, "*") == Precondition(must_be_new=True)
    with pytest.raises(RequestError):
        etag.precondition(None, '"7"')


@pytest.mark.parametrize("tag", ['W/"7"', "7", '"x"', '"7", "8"', ""])
def test_foreign_tags_never_match(tag: str) -> None:
    """A tag that this service never gave is stale by definition."""
    with pytest.raises(CatalogError) as caught:
        etag.precondition(tag, None)
    assert caught.value.code == "stale"
