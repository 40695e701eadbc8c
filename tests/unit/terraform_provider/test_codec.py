from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leatstream_terraform.codec import UNKNOWN, decode, encode, has_unknown, number

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text() | st.just(UNKNOWN),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_round_trip(value: Any) -> None:
    assert decode(encode(value)) == value


def test_unknown_is_extension_type_zero() -> None:
    assert encode(UNKNOWN) == b"\xd4\x00\x00"


def test_refined_unknown_is_unknown() -> None:
    refined = msgpack.packb(msgpack.ExtType(12, msgpack.packb({1: False})))
    assert decode(refined) is UNKNOWN


def test_empty_is_null() -> None:
    assert decode(b"") is None


def test_other_extension_is_refused() -> None:
    with pytest.raises(ValueError, match="extension type 7"):
        decode(msgpack.packb(msgpack.ExtType(7, b"x")))


def test_unknown_is_no_truth_value() -> None:
    with pytest.raises(TypeError):
        bool(UNKNOWN)


@pytest.mark.parametrize(
    ("given_", "wanted"), [("6", 6), (6.0, 6), ("6.5", 6.5), (7, 7), ("1e3", 1000), (2**70, 2**70)]
)
def test_numbers_of_any_spelling(given_: Any, wanted: Any) -> None:
    found = number(given_)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize("bad", [True, "six", None])
def test_what_is_no_number(bad: Any) -> None:
    with pytest.raises(ValueError, match="not a number"):
        number(bad)


def test_unknown_is_found_at_any_depth() -> None:
    assert has_unknown({"a": [1, {"b": UNKNOWN}]})
    assert not has_unknown({"a": [1, {"b": None}]})
