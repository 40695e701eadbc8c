from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from leatstream.cli.connection import NoServer, find_connection
from leatstream.dev.workspace import write_private


def write_ready(directory: Path, pid: int | None = None) -> None:
    body = {
        "url": "http://127.0.0.1:9",
        "token": "leat_dev",
        "kafka_bootstrap": "x",
        "pid": pid or os.getpid(),
    }
    (directory / ".leatstream").mkdir()
    write_private(directory / ".leatstream" / "ready.json", body)


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


def test_the_environment_s_token_is_not_sent_to_an_address_that_was_found(tmp_path: Path) -> None:
    """A cloned repository can hold a ready file with any address, and pid 1 always lives."""
    write_ready(tmp_path, pid=1)
    below = tmp_path / "src"
    below.mkdir()
    with pytest.raises(NoServer, match="LEATSTREAM_TOKEN is set, but LEATSTREAM_URL is not") as caught:
        find_connection(None, {"LEATSTREAM_TOKEN": "leat_real"}, below)
    assert "leat_real" not in str(caught.value)
    assert "unset LEATSTREAM_TOKEN" in str(caught.value)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604, 0o620])
def test_a_ready_file_that_others_could_have_made_is_refused(tmp_path: Path, mode: int) -> None:
    write_ready(tmp_path)
    (tmp_path / ".leatstream" / "ready.json").chmod(mode)
    with pytest.raises(NoServer, match=f"its mode is 0{mode:03o}"):
        find_connection(None, {}, tmp_path)
    # Who names a server needs no such file, and gets nothing from it.
    assert find_connection("http://127.0.0.1:9", {}, tmp_path).token is None


def test_a_ready_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ready(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(NoServer, match="it belongs to another user"):
        find_connection(None, {}, tmp_path)


@pytest.mark.parametrize("wrong", [{"url": "ftp://h"}, {"url": "http://u:pw@h"}])
def test_a_found_address_is_checked_like_a_named_one(tmp_path: Path, wrong: dict[str, str]) -> None:
    (tmp_path / ".leatstream").mkdir()
    body = {"url": "http://h", "token": "t", "pid": os.getpid()} | wrong
    write_private(tmp_path / ".leatstream" / "ready.json", body)
    with pytest.raises(NoServer) as caught:
        find_connection(None, {}, tmp_path)
    assert "pw" not in str(caught.value)


def test_token_does_not_show() -> None:
    assert "leat_x" not in repr(find_connection("http://h", {"LEATSTREAM_TOKEN": "leat_x"}, Path("/")))


@pytest.mark.parametrize("written", ["leat_x\n", "leat_x\r\n", " leat_x "])
def test_the_end_of_line_that_a_file_leaves_is_no_part_of_the_token(written: str) -> None:
    assert find_connection("http://h", {"LEATSTREAM_TOKEN": written}, Path("/")).token == "leat_x"


@pytest.mark.parametrize("written", ["", " \n"])
def test_an_empty_token_is_none(written: str) -> None:
    assert find_connection("http://h", {"LEATSTREAM_TOKEN": written}, Path("/")).token is None


@pytest.mark.parametrize(
    "written", ["leat_one two", "leat_one\ntwo", "leat_one\ttwo", "leat_oneätwo", "leat_one…"]
)
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(written: str) -> None:
    with pytest.raises(NoServer, match="LEATSTREAM_TOKEN is not a token") as caught:
        find_connection("http://h", {"LEATSTREAM_TOKEN": written}, Path("/"))
    assert not any(part in str(caught.value) for part in ("leat_", "one", "two"))


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:85x5",
        "http://localhost:99999",
        "http://[::1",
        "localhost:8585",
        "ftp://h",
        "h",
        "http://",
        "http://h\x7f",
        "http://ä..b",
    ],
)
@pytest.mark.parametrize("origin", ["--url", "LEATSTREAM_URL"])
def test_what_is_no_url_of_a_server_is_told_with_where_it_stands(url: str, origin: str) -> None:
    by_flag = origin == "--url"
    with pytest.raises(NoServer, match="write it like http://127") as caught:
        find_connection(url if by_flag else None, {} if by_flag else {"LEATSTREAM_URL": url}, Path("/"))
    assert f"({origin})" in str(caught.value)


@pytest.mark.parametrize("url", ["http://u:s3cret@h:85x5", "http://u:s3cret@[::1", "u:s3cret@h"])
def test_a_broken_url_with_a_user_is_not_shown(url: str) -> None:
    with pytest.raises(NoServer, match="is not the URL") as caught:
        find_connection(url, {}, Path("/"))
    assert "s3cret" not in str(caught.value)


def test_a_name_beyond_ascii_may_be_a_servers() -> None:
    assert find_connection("http://bücher.example", {}, Path("/")).url == "http://bücher.example"


@pytest.mark.parametrize("url", ["http://u:s3cret@h", "http://u:s3cret@h:8585/leat", "http://u@h"])
def test_a_url_with_a_user_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(NoServer, match="LEATSTREAM_TOKEN") as caught:
        find_connection(url, {}, Path("/"))
    assert "s3cret" not in str(caught.value)


def test_blanks_around_a_url_are_no_part_of_it() -> None:
    assert find_connection(None, {"LEATSTREAM_URL": " https://h/leat/ \n"}, Path("/")).url == "https://h/leat"
