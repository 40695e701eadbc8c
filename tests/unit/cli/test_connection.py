from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from leatstream.cli.connection import NoServer, find_connection


def write_ready(directory: Path, pid: int | None = None) -> None:
    body = {
        "url": "http://127.0.0.1:9",
        "token": "leat_dev",
        "kafka_bootstrap": "x",
        "pid": pid or os.getpid(),
    }
    (directory / ".leatstream").mkdir()
    (directory / ".leatstream" / "ready.json").write_text(json.dumps(body))


def test_flag_wins_over_environment(tmp_path: Path) -> None:
    env = {"LEATSTREAM_URL": "http://env", "LEATSTREAM_TOKEN": "t"}
    found = find_connection("http://flag/", env, tmp_path)
    assert (found.url, found.token, found.origin) == ("http://flag", "t", "--url")


def test_environment_wins_over_a_running_dev(tmp_path: Path) -> None:
    write_ready(tmp_path)
    found = find_connection(None, {"LEATSTREAM_URL": "http://env", "LEATSTREAM_TOKEN": "t"}, tmp_path)
    assert (found.url, found.token) == ("http://env", "t")


def test_token_of_a_running_dev_is_not_sent_elsewhere(tmp_path: Path) -> None:
    write_ready(tmp_path)
    assert find_connection("http://elsewhere", {}, tmp_path).token is None
    assert find_connection("http://127.0.0.1:9/", {}, tmp_path).token == "leat_dev"


def test_running_dev_is_found_from_a_folder_below(tmp_path: Path) -> None:
    write_ready(tmp_path)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    found = find_connection(None, {}, below)
    assert (found.url, found.token) == ("http://127.0.0.1:9", "leat_dev")


def test_dev_that_has_ended_is_not_taken(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    write_ready(tmp_path, ended.pid)
    with pytest.raises(NoServer, match="leat dev"):
        find_connection(None, {}, tmp_path)


def test_damaged_ready_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".leatstream").mkdir()
    (tmp_path / ".leatstream" / "ready.json").write_text("{")
    with pytest.raises(NoServer):
        find_connection(None, {}, tmp_path)


def test_token_does_not_show() -> None:
    assert "leat_x" not in repr(find_connection("http://h", {"LEATSTREAM_TOKEN": "leat_x"}, Path("/")))
