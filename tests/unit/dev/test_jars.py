from __future__ import annotations

import hashlib
import re
import threading
import time
from pathlib import Path

import pytest

from leatstream.dev import jars
from leatstream.dev.cache import cache_dir
from leatstream.dev.jars import Jar, JarSet, ensure, is_cached, locked
from leatstream.errors import StackError

LOCKS = Path(jars.__file__).parent / "locks"
CONTENT = b"a jar"


@pytest.fixture
def one_jar(monkeypatch: pytest.MonkeyPatch) -> Jar:
    jar = Jar("org.example.deep", "thing", "1.2", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(jars, "locked", lambda _jar_set: (jar,))
    return jar


class Registry:
    """Stands in for the resolver: writes what it is told where the staging repository wants it."""

    def __init__(self, content: bytes | None = CONTENT) -> None:
        self.content = content
        self.asked: list[str] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from jgo.maven import PythonResolver

        def download(_resolver: object, artifact: object) -> Path:
            self.asked.append(str(artifact))
            time.sleep(0.05)  # long enough for a concurrent caller to ask as well, were it let through
            if self.content is None:
                raise RuntimeError(
                    "not found in the remote repositories {'secret': 'https://user:pw@mirror'}"
                )
            path: Path = artifact.cached_path  # type: ignore[attr-defined]
            path.parent.mkdir(parents=True)
            path.write_bytes(self.content)
            return path

        monkeypatch.setattr(PythonResolver, "download", download)


def test_the_spark_set_is_exactly_the_tried_one() -> None:
    assert [jar.coordinate for jar in locked("spark")] == [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    ]


def test_the_broker_set_is_a_closure_with_a_logger_that_fits() -> None:
    found = {jar.artifact: jar.version for jar in locked("broker")}
    assert len(found) == len(locked("broker")) == 46
    assert found["kafka_2.13"] == "4.1.1"
    assert found["slf4j-api"].startswith("1.7.")
    assert found["log4j-slf4j-impl"] == found["log4j-core"] == found["log4j-api"]
    assert "log4j-slf4j2-impl" not in found


@pytest.mark.parametrize("jar_set", ["spark", "broker", "msk"])
def test_locks_hold_sums_and_no_addresses(jar_set: JarSet) -> None:
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in locked(jar_set))
    text = (LOCKS / f"{jar_set}.lock.toml").read_text()
    assert "://" not in text
    assert not re.search(r"(?i)\b(maven|repo|mirror|central|url)\b", text)


def test_one_download_then_offline(one_jar: Jar, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    registry.install(monkeypatch)
    seen: list[tuple[int, int]] = []
    assert not is_cached("spark")

    (path,) = ensure("spark", lambda done, wanted: seen.append((done, wanted)))

    assert path == cache_dir() / "jars/org/example/deep/thing/1.2/thing-1.2.jar"
    assert path.read_bytes() == CONTENT
    assert seen == [(1, 1)]
    registry.content = None
    assert ensure("spark") == [path]
    assert len(registry.asked) == 1
    assert is_cached("spark")
    assert sorted(entry.name for entry in cache_dir().iterdir()) == ["jars", "jars.lock"]


def test_a_damaged_file_is_fetched_again(one_jar: Jar, monkeypatch: pytest.MonkeyPatch) -> None:
    Registry().install(monkeypatch)
    (path,) = ensure("spark")
    path.write_bytes(CONTENT[:2])
    assert not is_cached("spark")
    ensure("spark")
    assert path.read_bytes() == CONTENT


def test_a_wrong_sum_is_refused_and_not_kept(one_jar: Jar, monkeypatch: pytest.MonkeyPatch) -> None:
    Registry(b"something else").install(monkeypatch)
    with pytest.raises(StackError, match="SHA-256") as caught:
        ensure("spark")
    assert caught.value.code == "jars-unavailable"
    assert not list(cache_dir().rglob("*.jar"))


def test_offline_and_uncached_says_what_to_do(one_jar: Jar, monkeypatch: pytest.MonkeyPatch) -> None:
    Registry(None).install(monkeypatch)
    with pytest.raises(StackError) as caught:
        ensure("spark")
    assert one_jar.coordinate in caught.value.detail
    assert str(cache_dir()) in caught.value.detail
    assert "pw" not in caught.value.detail  # a mirror's address may hold a password
    assert "LEATSTREAM_CACHE_DIR" in (caught.value.faults[0].hint or "")


def test_concurrent_callers_download_once(one_jar: Jar, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    registry.install(monkeypatch)
    results: list[list[Path]] = []
    threads = [threading.Thread(target=lambda: results.append(ensure("spark"))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(results) == 5
    assert len(registry.asked) == 1
