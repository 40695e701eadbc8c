"""Drivers of an account of their own: as root with another account, else with that of the tests."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deadlines import patient
from scratch import memory_directory

from leatstream.engine import driver_account as accounts
from leatstream.engine.driver_account import DriverAccount, find_account
from leatstream.engine.processes import DriverCommand, LocalLauncher
from leatstream.errors import EngineError, StackError
from leatstream.launching import driver_account, open_launcher
from leatstream.settings import Settings
from leatstream.storage.checkpoint_directory import CheckpointDirectory

ROOT = os.geteuid() == 0
NAME = "nobody" if ROOT else pwd.getpwuid(os.geteuid()).pw_name
# Stands in for Python, which need not be where the account can read it.
DRIVER = """#!/bin/sh
for one in "$@"; do case $last in --token-file) token=$one;; --work-dir) work=$one;; esac; last=$one; done
cat "$token" > "$work/seen" && rm "$token" && id -u > "$work/uid" && echo "$HOME" > "$work/home"
exec sleep 60
"""


@pytest.fixture
def account() -> DriverAccount:
    """The account of the drivers."""
    found = find_account(NAME)
    assert found is not None
    return found


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that other accounts can pass through."""
    with memory_directory() as made:
        path = Path(made)
        path.chmod(0o711)
        yield path


def awaited(path: Path) -> str:
    """The text of a file that a driver writes."""
    deadline = time.monotonic() + patient(20)
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline, path
        time.sleep(0.02)
    return path.read_text().strip()


def test_a_driver_has_the_account_and_can_delete_its_token(
    account: DriverAccount, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = place / "python"
    stand_in.write_text(DRIVER)
    stand_in.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stand_in))
    places = place / "url", place / "work", place / "logs"
    launcher = LocalLauncher(DriverCommand(*places, {}, 2, account=account))
    pid = launcher.start("drv_1", "dedicated", "the-token")
    own = place / "work" / "drv_1"
    try:
        assert awaited(own / "home") == (str(own) if ROOT else os.environ["HOME"])
        assert awaited(own / "uid") == str(account.uid)
        assert awaited(own / "seen") == "the-token"
        assert not (own / "token").exists()
        assert (own.stat().st_uid, own.stat().st_mode & 0o777) == (account.uid, 0o700)
        assert launcher.is_alive("drv_1", pid)
        launcher.end_strangers({"drv_1"})
        assert own.exists()
    finally:
        launcher.end("drv_1", pid, 0)
    launcher.end_strangers(())
    assert list((place / "work").iterdir()) == []


def test_files_are_used_with_the_rights_of_the_account(account: DriverAccount, place: Path) -> None:
    """A link that a function laid led the server, which may read everything, to the key ring."""
    keys = place / "keys.json"
    keys.write_text("the key ring")
    keys.chmod(0o600)
    root = place / "points"
    account.give_all(root)
    files = CheckpointDirectory(root, account.files)
    with account.files():
        (root / "queries/q1/g1").mkdir(parents=True)
        (root / "queries/q1/g1/metadata").write_text("{}")
    files.copy("queries/q1/g1", "savepoints/s1")
    assert (root / "savepoints/s1/metadata").stat().st_uid == account.uid
    with account.files():
        (root / "queries/q1/g1/link").symlink_to(keys)
    if ROOT:
        with pytest.raises(PermissionError):
            files.read("queries/q1/g1/link")
        with pytest.raises(Exception, match="Permission denied"):
            files.copy("queries/q1/g1", "savepoints/s2")
    assert "s1" in files.names("savepoints")
    assert keys.read_text() == "the key ring", "the server has its own rights again"
    files.remove("queries/q1")
    assert not files.holds("queries/q1/g1")


def test_a_directory_of_before_is_given_whole_and_links_are_not_followed(
    account: DriverAccount, place: Path
) -> None:
    outside, root = place / "outside", place / "points"
    outside.write_text("x")
    (root / "queries").mkdir(parents=True)
    (root / "queries" / "f").write_text("x")
    (root / "link").symlink_to(outside)
    account.give_all(root)
    owners = {path.lstat().st_uid for path in (root, *root.rglob("*"))}
    assert owners == {account.uid}
    assert outside.stat().st_uid == os.geteuid()


def test_there_must_be_such_an_account_without_rights() -> None:
    with pytest.raises(StackError, match="There is no account no-such-user"):
        find_account("no-such-user")
    with pytest.raises(StackError, match="must not be root"):
        find_account("root")
    assert find_account("") is None


def test_a_server_without_the_right_says_so(account: DriverAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise PermissionError(1, "Operation not permitted")

    other = DriverAccount("other", account.uid + 1, account.gid + 1, ())
    monkeypatch.setattr(accounts.os, "geteuid", lambda: 4711)
    monkeypatch.setattr(accounts.subprocess, "run", refused)
    with pytest.raises(StackError, match="may not start processes as it") as caught:
        other.check({})
    assert "SETUID" in str(caught.value.faults[0].hint)


@pytest.mark.parametrize(
    ("status", "stderr", "text"),
    [(1, "Traceback\nModuleNotFoundError: No module named 'x'", "No module named 'x'"), (1, "", "it ends")],
)
def test_what_the_account_cannot_use_is_named(
    account: DriverAccount, monkeypatch: pytest.MonkeyPatch, status: int, stderr: str, text: str
) -> None:
    other = DriverAccount("other", account.uid + 1, account.gid + 1, ())
    monkeypatch.setattr(
        accounts.subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, status, "", stderr)
    )
    with pytest.raises(StackError, match=text):
        other.check({"LEATSTREAM_JARS": "/a.jar,/b.jar"})


def test_the_probe_finds_what_cannot_be_read(tmp_path: Path) -> None:
    jar = tmp_path / "gone.jar"
    done = subprocess.run(
        [sys.executable, "-c", accounts._PROBE, str(jar)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (1, f"{jar} cannot be read")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"launcher": "standalone"}, "for the launcher local"),
        ({"catalog_url": ""}, "must be in PostgreSQL"),
        ({"checkpoint_root": "s3a://b/c"}, "must be in a directory"),
        ({"driver_user": "no-such-user"}, "There is no account"),
    ],
)
def test_other_settings_must_fit(tmp_path: Path, more: dict[str, str], text: str) -> None:
    given: Any = {"driver_user": NAME, "catalog_url": "postgresql://h/d", "data_dir": tmp_path, **more}
    with pytest.raises(StackError, match=text):
        open_launcher(Settings(**given), "srv_1", tmp_path / "url", {})


def test_without_the_setting_drivers_have_the_account_of_the_server(tmp_path: Path) -> None:
    assert driver_account(Settings(data_dir=tmp_path)) is None


def test_a_driver_that_cannot_be_started_leaves_nothing(
    account: DriverAccount, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(place / "gone"))
    places = place / "url", place / "work", place / "logs"
    with pytest.raises(EngineError):
        LocalLauncher(DriverCommand(*places, {}, 2, account=account)).start("drv_e", "dedicated", "t")
    assert [path for path in place.rglob("*") if path.is_file()] == []
