"""The secret box: what it seals, nobody else opens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leatstream.errors import InternalError, StackError
from leatstream.storage.key_file import KeyRing, add_key, read_key_ring, remove_key, use_key
from leatstream.storage.secret_box import KeyRingBox, key_of, open_secret_box

OLD, NEW = os.urandom(32), os.urandom(32)


def test_round_trip_and_fresh_keys() -> None:
    """The same value sealed twice looks different and opens the same."""
    box = KeyRingBox(KeyRing({"a": OLD}, "a"))
    first, second = box.seal("r", "pä$$"), box.seal("r", "pä$$")
    assert first != second
    assert b"p\xc3\xa4$$" not in first
    assert box.open("r", first) == box.open("r", second) == "pä$$"


def test_moved_changed_or_foreign_envelopes_do_not_open() -> None:
    """Another reference, another ring, one flipped bit, garbage."""
    box = KeyRingBox(KeyRing({"a": OLD}, "a"))
    sealed = box.seal("secret://store/1/sasl.password", "v")
    flipped = sealed[:-1] + bytes([sealed[-1] ^ 1])
    foreign = KeyRingBox(KeyRing({"b": NEW}, "b")).seal("secret://store/1/sasl.password", "v")
    for reference, envelope in [
        ("secret://store/2/sasl.password", sealed),
        ("secret://store/1/sasl.password", flipped),
        ("secret://store/1/sasl.password", foreign),
        ("secret://store/1/sasl.password", b"garbage"),
    ]:
        with pytest.raises(InternalError) as caught:
            box.open(reference, envelope)
        assert caught.value.faults[0].hint


def test_a_new_primary_seals_and_the_old_key_still_opens() -> None:
    """A key may be added to the ring while values of the old one remain."""
    sealed = KeyRingBox(KeyRing({"old": OLD}, "old")).seal("r", "v")
    both = KeyRingBox(KeyRing({"old": OLD, "new": NEW}, "new"))
    assert both.open("r", sealed) == "v"
    assert KeyRingBox(KeyRing({"new": NEW}, "new")).open("r", both.seal("r", "v")) == "v"


def test_key_file_is_made_once_and_private(tmp_path: Path) -> None:
    """A second start uses the same keys."""
    path = tmp_path / "deep" / "keys.json"
    sealed = open_secret_box(path).seal("r", "v")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["keys.json"]
    assert open_secret_box(path).open("r", sealed) == "v"


def test_a_key_file_of_roots_may_reach_the_server_by_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So Kubernetes mounts secrets; another's right to write, or everybody's to read, is still a fault."""
    path = tmp_path / "keys.json"
    open_secret_box(path)
    path.chmod(0o440)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    open_secret_box(path)
    for mode in (0o460, 0o444):
        path.chmod(mode)
        with pytest.raises(StackError, match="read by other users"):
            open_secret_box(path)


def test_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """As ssh does, with the command that mends it."""
    path = tmp_path / "keys.json"
    open_secret_box(path)
    path.chmod(0o644)
    with pytest.raises(StackError) as caught:
        open_secret_box(path)
    assert "chmod 600" in (caught.value.faults[0].hint or "")


@pytest.mark.parametrize(
    "text", ["", "{}", '{"primary":"a","keys":{}}', '{"primary":"a","keys":{"a":"YQ=="}}']
)
def test_broken_key_file(tmp_path: Path, text: str) -> None:
    """Named, never replaced."""
    path = tmp_path / "keys.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(StackError):
        open_secret_box(path)
    assert path.read_text() == text


def test_wrong_key_ring() -> None:
    """A programmer's mistake shows at once."""
    with pytest.raises(ValueError, match="not in the key ring"):
        KeyRingBox(KeyRing({"a": OLD}, "b"))
    with pytest.raises(ValueError, match="instead of 32"):
        KeyRingBox(KeyRing({"a": b"short"}, "a"))


def test_a_changed_file_is_read_again_and_a_broken_one_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys come and go while servers run; an edit that goes wrong stops nobody."""
    path = tmp_path / "keys.json"
    box = open_secret_box(path)
    first = box.seal("r", "v")
    new = add_key(path)
    assert box.present.ring.primary != new
    use_key(path, new)
    assert (key_of(box.seal("r", "v")), box.open("r", first)) == (new, "v")
    text = path.read_text()
    for broken in (text[:20], None):
        caplog.clear()
        path.unlink() if broken is None else path.write_text(broken)
        assert [box.open("r", first) for _ in range(2)] == ["v", "v"]
        assert len([one for one in caplog.records if one.levelname == "ERROR"]) == 1
    assert text[-20:] not in caplog.text
    path.touch(mode=0o600)
    path.write_text(text)
    remove_key(path, next(iter(read_key_ring(path).keys)))
    with pytest.raises(InternalError):
        box.open("r", first)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_to_the_file_stays_one_and_readers_see_whole_files(tmp_path: Path) -> None:
    """So Kubernetes and some people mount it."""
    path, link = tmp_path / "real.json", tmp_path / "keys.json"
    open_secret_box(path)
    link.symlink_to(path)
    key = add_key(link)
    assert (link.is_symlink(), read_key_ring(path).newest) == (True, key)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["keys.json", "real.json"]


def test_wrapping_again_keeps_the_value_and_its_place() -> None:
    """Only the wrapped key is new; a value of another reference is refused."""
    old = KeyRingBox(KeyRing({"old": OLD}, "old")).seal("r", "v")
    both = KeyRingBox(KeyRing({"old": OLD, "new": NEW}, "new"))
    again = both.rewrap("r", old)
    assert KeyRingBox(KeyRing({"new": NEW}, "new")).open("r", again) == "v"
    with pytest.raises(InternalError):
        both.rewrap("elsewhere", old)
