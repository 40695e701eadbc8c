from __future__ import annotations

import json
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from leatstream.dev.child import ProcessMark
from leatstream.dev.workspace import Workspace, sweep, write_private
from leatstream.errors import StackError


def test_a_second_owner_is_told_who_and_where(tmp_path: Path) -> None:
    first = Workspace(tmp_path / "data")
    first.acquire()
    first.publish(url="http://127.0.0.1:1234")
    with pytest.raises(StackError) as caught:
        Workspace(tmp_path / "data").acquire()
    assert caught.value.code == "already-running"
    assert str(ProcessMark.mine().pid) in caught.value.detail
    assert "http://127.0.0.1:1234" in caught.value.detail
    first.release()
    second = Workspace(tmp_path / "data")
    second.acquire()
    second.release()


def test_an_owner_still_starting_is_told(tmp_path: Path) -> None:
    first = Workspace(tmp_path)
    first.acquire()
    with pytest.raises(StackError, match="still starting"):
        Workspace(tmp_path).acquire()
    first.release()


def test_what_a_killed_owner_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "owner.json").write_text(json.dumps({"pid": ProcessMark.mine().pid, "create_time": 1.0}))
    (tmp_path / "owner.lock").touch()
    (tmp_path / "ready.json").write_text("{}")
    workspace = Workspace(tmp_path)
    workspace.acquire()
    assert not (tmp_path / "ready.json").exists()
    workspace.release()


def test_release_leaves_data_and_takes_notices(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.acquire()
    (tmp_path / "catalog.db").touch()
    write_private(tmp_path / "ready.json", {})
    workspace.release()
    workspace.release()
    assert {path.name for path in tmp_path.iterdir()} == {"catalog.db", "owner.lock"}


def test_an_ephemeral_directory_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    workspace = Workspace(None)
    workspace.acquire()
    assert workspace.path.parent == tmp_path
    (workspace.path / "kafka").mkdir()
    workspace.release()
    assert not workspace.path.exists()


def test_ephemeral_directories_of_killed_owners_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = Workspace(None)
    mine.acquire()
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    ended.wait()
    orphan = tmp_path / "leatstream-dev-orphan"
    write_private(orphan / "owner.json", {"pid": ended.pid, "create_time": 1.0})
    being_made = tmp_path / "leatstream-dev-new"
    being_made.mkdir()
    sweep()
    assert not orphan.exists()
    assert being_made.exists()
    assert mine.path.exists()
    mine.release()


def test_private_files_are_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ready.json"
    write_private(path, {"token": "leat_x"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {"token": "leat_x"}
    assert [entry.name for entry in path.parent.iterdir()] == ["ready.json"]
    with pytest.raises(TypeError):
        write_private(path, {"token": object()})
    assert [entry.name for entry in path.parent.iterdir()] == ["ready.json"]
