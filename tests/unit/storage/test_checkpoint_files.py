"""Files of checkpoints, in a directory and under a URL: what holds for both, by Hadoop's real Java client."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j import protocol

from leatstream.dev.java import find_java
from leatstream.errors import CheckpointError
from leatstream.ports import CheckpointFiles
from leatstream.services.queries.checkpoints.files import copy_offsets, last_commit, offsets_of
from leatstream.services.queries.checkpoints.first_offsets import first_offsets
from leatstream.storage.checkpoint_directory import CheckpointDirectory
from leatstream.storage.checkpoint_url import CheckpointUrl
from leatstream.storage.hadoop_client import HadoopClient

OFFSETS = 'v1\n{"batchWatermarkMs":0}\n{"a":{"0":7}}'
FILES = {
    "metadata": '{"id":"x"}',
    "leat_sources.json": "{}",
    "offsets/2": "v1\n{}\n{}",
    "offsets/3": OFFSETS,
    "offsets/4": "of a batch that was not committed",
    "commits/2": "v1\n{}",
    "commits/3": "v1\n{}",
    "sources/0/0": 'v1\n{"a":{"0":5}}',
    "state/0/0/1.delta": "rows ä",
}


def java_environment() -> dict[str, str]:
    java = find_java()
    assert java is not None
    return {"PATH": os.environ["PATH"], "JAVA_HOME": str(java.home)}


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark of other tests in this process, which no server has, looks at every fault of Py4J's as its own."""
    monkeypatch.setattr("py4j.java_gateway.get_return_value", protocol.get_return_value)


@pytest.fixture(scope="module")
def client() -> Iterator[HadoopClient]:
    """One JVM for all."""
    client = HadoopClient(java_environment(), {"leatstream.told": "in vain"})
    yield client
    client.close()


@pytest.fixture(params=["directory", "url"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointFiles:
    if request.param == "directory":
        return CheckpointDirectory(tmp_path)
    return CheckpointUrl(f"file://{tmp_path}/", request.getfixturevalue("client"))


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    for name, text in FILES.items():
        (tmp_path / "queries/q/g1" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "queries/q/g1" / name).write_text(text)
    return "queries/q/g1"


def there(folder: Path) -> dict[str, str]:
    found = (p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".crc"))
    return {str(p.relative_to(folder)): p.read_text() for p in found}


def test_what_a_checkpoint_says(files: CheckpointFiles, checkpoint: str, tmp_path: Path) -> None:
    assert files.names("queries/q") == ["g1"]
    assert (files.holds(checkpoint), files.holds("queries/q/g2"), files.names("queries/none")) == (
        True,
        False,
        [],
    )
    assert files.read(f"{checkpoint}/state/0/0/1.delta") == "rows ä"
    os.utime(tmp_path / checkpoint / "metadata", (1_000_000.0, 1_000_000.0))
    assert files.modified(f"{checkpoint}/metadata") == 1_000_000.0
    assert files.modified(f"{checkpoint}/none") is None
    assert last_commit(files, checkpoint) == 3
    assert last_commit(files, "queries/none") is None
    assert offsets_of(files, checkpoint, ["d.s.a"]) == {"d.s.a": {"a": {"0": 7}}}
    assert offsets_of(files, "queries/none", ["d.s.a"]) == {}
    assert first_offsets(files, checkpoint) == {"a": {"0": 5}}
    with pytest.raises(FileNotFoundError):
        files.read(f"{checkpoint}/none")


def test_copies_are_whole_and_made_once(files: CheckpointFiles, checkpoint: str, tmp_path: Path) -> None:
    files.copy(checkpoint, "savepoints/s")
    assert there(tmp_path / "savepoints/s") == FILES
    (tmp_path / checkpoint / "offsets/4").write_text("another")
    files.copy(checkpoint, "savepoints/s")
    assert there(tmp_path / "savepoints/s") == FILES, "who was interrupted asks again"
    copy_offsets(files, checkpoint, "queries/p/g1")
    some = ("metadata", "leat_sources.json", "offsets/3", "commits/3", "sources/0/0")
    assert there(tmp_path / "queries/p/g1") == {name: FILES[name] for name in some}
    for gone in (
        lambda: files.copy("queries/none", "savepoints/t"),
        lambda: copy_offsets(files, "none", "t"),
    ):
        with pytest.raises(FileNotFoundError):
            gone()
    assert files.names("savepoints") == ["s"]


def test_half_a_copy_is_none(files: CheckpointFiles, checkpoint: str, tmp_path: Path) -> None:
    """Of one that was cut off nothing is left in the next."""
    for name in ("savepoints/s/offsets/9", "savepoints/s.part/offsets/9"):
        if name.startswith("savepoints/s.") or isinstance(files, CheckpointUrl):
            (tmp_path / name).parent.mkdir(parents=True)
            (tmp_path / name).write_text("half")
    assert not files.holds("savepoints/s")
    files.copy(checkpoint, "savepoints/s")
    assert there(tmp_path / "savepoints/s") == FILES


def test_what_is_removed_is_gone(files: CheckpointFiles, checkpoint: str) -> None:
    files.remove("queries/q")
    assert (files.names("queries"), files.holds(checkpoint)) == ([], False)
    files.remove("queries/q")


@pytest.mark.parametrize(
    ("number", "code", "retryable"),
    [
        (errno.ENOSPC, "disk-full", True),
        (errno.EIO, "checkpoints-unreachable", True),
        (errno.EACCES, "checkpoints-refused", False),
    ],
)
def test_why_a_copy_fails(
    checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str, retryable: bool
) -> None:
    """One short cause, by which it is known whether another try helps; and no half copy."""
    plain = shutil.copy2

    def copy(source: str, target: str) -> Any:
        if "state" in str(source):
            raise OSError(number, os.strerror(number), target)
        return plain(source, target)

    monkeypatch.setattr(shutil, "copy2", copy)
    files = CheckpointDirectory(tmp_path)
    with pytest.raises(CheckpointError, match=os.strerror(number)) as told:
        files.copy(checkpoint, "savepoints/s")
    assert (told.value.code, told.value.retryable) == (code, retryable)
    assert len(told.value.detail) < 300
    assert files.names("savepoints") == []


def test_half_a_copy_goes_with_its_name(tmp_path: Path) -> None:
    """A server that was ended while it copied leaves as much as a state takes; nobody asks for it again."""
    (tmp_path / "savepoints/s.part/state").mkdir(parents=True)
    CheckpointDirectory(tmp_path).remove("savepoints/s")
    assert CheckpointDirectory(tmp_path).names("savepoints") == []


def test_a_copy_has_its_name_only_when_all_of_it_is_on_the_disk(
    checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that stops keeps what was synced: a name before the bytes would be a copy of empty files."""
    target, synced = tmp_path / "s" / "copy", []
    plain = os.fsync

    def fsync(opened: int) -> None:
        synced.append((Path(os.readlink(f"/proc/self/fd/{opened}")), target.exists()))
        plain(opened)

    monkeypatch.setattr(os, "fsync", fsync)
    CheckpointDirectory(tmp_path).copy(checkpoint, "s/copy")
    before = {path.relative_to(target.with_name("copy.part")) for path, named in synced if not named}
    assert before == {Path(), *(path.relative_to(target) for path in target.rglob("*"))}
    assert [path for path, named in synced if named] == [target.parent]


def test_the_mark_of_a_whole_copy_comes_last(
    client: HadoopClient, checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CheckpointUrl(f"file://{tmp_path}", client)
    copy = files._copy_file

    def failing(source: str, target: str, name: str) -> None:
        if name == "state/0/0/1.delta":
            raise CheckpointError("checkpoints-unreachable", "away")
        copy(source, target, name)

    with monkeypatch.context() as away:
        away.setattr(files, "_copy_file", failing)
        with pytest.raises(CheckpointError):
            files.copy(checkpoint, "savepoints/s")
    assert not files.holds("savepoints/s")
    files.copy(checkpoint, "savepoints/s")
    assert there(tmp_path / "savepoints/s") == FILES


def test_a_damaged_checkpoint_is_not_copied(client: HadoopClient, checkpoint: str, tmp_path: Path) -> None:
    (tmp_path / checkpoint / "metadata").unlink()
    with pytest.raises(FileNotFoundError, match="has lost its file metadata"):
        CheckpointUrl(f"file://{tmp_path}", client).copy(checkpoint, "savepoints/s")


def test_settings_and_faults_are_told(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/core-site.xml").write_text(
        "<configuration><property><name>a.site</name><value>here</value></property>"
        "<property><name>told</name><value>by the site</value></property></configuration>"
    )
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars/of-a-jar").touch()
    told = {"HADOOP_CONF_DIR": str(tmp_path / "conf"), "LEATSTREAM_BOOTSTRAP_TOKEN": "hidden"}
    told["SPARK_DIST_CLASSPATH"] = str(tmp_path / "jars")
    client = HadoopClient({**java_environment(), **told}, {"told": "by the server"})
    try:
        assert client.ask(lambda _, conf: (conf.get("a.site"), conf.get("told")), 20) == (
            "here",
            "by the server",
        )
        assert (
            client.ask(lambda jvm, _: jvm.java.lang.System.getenv("LEATSTREAM_BOOTSTRAP_TOKEN"), 20) is None
        )
        assert (
            client.ask(lambda jvm, _: jvm.java.lang.ClassLoader.getSystemResource("of-a-jar"), 20) is not None
        )
        with pytest.raises(CheckpointError, match='No FileSystem for scheme "nofs"') as refused:
            CheckpointUrl("nofs://a/b", client).names("x")
        assert (refused.value.code, refused.value.retryable) == ("checkpoints-refused", False)
        with pytest.raises(
            CheckpointError, match=r"ConnectException: Call From .* Connection refused\.$"
        ) as away:
            CheckpointUrl("hdfs://127.0.0.1:1/x", client).names("x")
        assert (away.value.code, away.value.retryable) == ("checkpoints-unreachable", True)
        # For a while, the next callers get the same answer at once.
        began = time.monotonic()
        with pytest.raises(CheckpointError, match=r"Connection refused\.$"):
            CheckpointUrl(f"file://{tmp_path}", client).names("x")
        assert time.monotonic() - began < 0.5
    finally:
        client.close()


@pytest.mark.parametrize("told", [{"JAVA_HOME": "/nowhere"}, {"JAVA_TOOL_OPTIONS": "-XX:NoSuchFlag"}])
def test_no_jvm(told: dict[str, Any]) -> None:
    client = HadoopClient({**java_environment(), **told}, {})
    with pytest.raises(CheckpointError, match=r"No such file or directory|NoSuchFlag") as refused:
        client.ask(lambda _, conf: conf.get("a"), 20)
    assert refused.value.code == "checkpoints-refused"


def test_a_jvm_that_hangs_is_ended_and_replaced(client: HadoopClient) -> None:
    pid = lambda jvm, _: jvm.java.lang.ProcessHandle.current().pid()  # noqa: E731
    before = client.ask(pid, 20)
    with pytest.raises(CheckpointError, match=r"did not answer within 0\.3 seconds"):
        client.ask(lambda jvm, _: jvm.java.lang.Thread.sleep(60_000), 0.3)
    assert not Path(f"/proc/{before}").exists()
    client._away = (0.0, "")  # not after some seconds, but now
    assert client.ask(pid, 20) != before


def test_a_jvm_that_nobody_asks_ends(client: HadoopClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leatstream.storage.hadoop_client._IDLE_SECONDS", 0.1)
    pid = client.ask(lambda jvm, _: jvm.java.lang.ProcessHandle.current().pid(), 20)
    until = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
