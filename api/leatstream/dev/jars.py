"""The JVM libraries of the embedded stack, from committed locks, through a per-user cache.

A lock holds coordinates and SHA-256 sums and no addresses: where to fetch from is the user's own
configuration (``jgo`` reads ``~/.config/jgo.conf``, and uses Maven Central when there is none).
Once cached, nothing here touches the network; every file is checked against its sum at each use.
"""

from __future__ import annotations

import hashlib
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal, TypeAlias

from leatstream.dev.cache import cache_dir, exclusive
from leatstream.errors import StackError

JarSet: TypeAlias = Literal["spark", "broker", "msk", "h2", "delta"]
Progress: TypeAlias = Callable[[int, int], None]

DOWNLOADS_AT_ONCE = 6
DOWNLOAD_TIMEOUT = 60  # seconds without an answer, per file


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked artifact.

    Attributes:
        group: Maven group.
        artifact: Maven artifact.
        version: exact version.
        sha256: lower-case hex digest of the file.
        classifier: which of the artifact's files; empty = the plain one.
    """

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def coordinate(self) -> str:
        """``group:artifact:version``."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def relative_path(self) -> Path:
        """Place below the cache's jar directory, laid out as a Maven repository."""
        file_name = "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"
        return Path(*self.group.split("."), self.artifact, self.version, file_name)


def locked(jar_set: JarSet) -> tuple[Jar, ...]:
    """Read the committed lock of a jar set, in class-path order."""
    text = resources.files("leatstream.dev").joinpath("locks", f"{jar_set}.lock.toml").read_text("utf-8")
    entries = tomllib.loads(text)["dependencies"]
    return tuple(
        Jar(e["groupId"], e["artifactId"], e["version"], e["sha256"], e.get("classifier", ""))
        for e in entries
    )


def spark_jars(progress: Progress | None = None) -> list[Path]:
    """The Kafka connector for PySpark: exactly the locked jars, for ``spark.jars``.

    Raises:
        StackError: ``jars-unavailable`` when a jar is neither cached nor to be had.
    """
    return ensure("spark", progress)


def broker_jars(progress: Progress | None = None) -> list[Path]:
    """The class path of the embedded Kafka broker.

    Raises:
        StackError: ``jars-unavailable`` when a jar is neither cached nor to be had.
    """
    return ensure("broker", progress)


def msk_jars(progress: Progress | None = None) -> list[Path]:
    """Amazon's library for AWS_MSK_IAM, for ``spark.jars``; only servers that are set to have it do.

    Raises:
        StackError: ``jars-unavailable`` when it is neither cached nor to be had.
    """
    return ensure("msk", progress)


def is_cached(jar_set: JarSet) -> bool:
    """Whether every jar of the set lies in the cache with the right sum."""
    return not _unfit(locked(jar_set))


def ensure(jar_set: JarSet, progress: Progress | None = None) -> list[Path]:
    """Bring a jar set into the cache and check it.

    Args:
        jar_set: which lock.
        progress: called with (files present, files wanted) while downloading.

    Returns:
        Absolute paths in the lock's order; every file has its locked SHA-256.

    Raises:
        StackError: ``jars-unavailable``.
    """
    return bring(locked(jar_set), progress)


def bring(jars: Sequence[Jar], progress: Progress | None = None) -> list[Path]:
    """Bring these jars into the cache and check them; as ``ensure``."""
    if _unfit(jars):
        with exclusive("jars"):
            missing = _unfit(jars)  # another process may have fetched them while we waited
            if missing:
                _fetch(missing, len(jars), progress)
    return [_place(jar) for jar in jars]


def sha256_of(path: Path) -> str:
    """Lower-case hex SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _place(jar: Jar) -> Path:
    return cache_dir() / "jars" / jar.relative_path


def _unfit(jars: Sequence[Jar]) -> list[Jar]:
    places = [(jar, _place(jar)) for jar in jars]
    return [jar for jar, place in places if not place.is_file() or sha256_of(place) != jar.sha256]


def _fetch(missing: Sequence[Jar], wanted: int, progress: Progress | None) -> None:
    """Download into a staging directory and move what has the right sum: a torn file is never visible."""
    done = wanted - len(missing)
    staging_dir = tempfile.TemporaryDirectory(prefix="staging-", dir=cache_dir())
    with staging_dir as staging, ThreadPoolExecutor(DOWNLOADS_AT_ONCE, "download") as pool:
        attempts = [pool.submit(_fetch_one, jar, Path(staging)) for jar in missing]
        try:
            for attempt in attempts:
                attempt.result()
                done += 1
                if progress is not None:
                    progress(done, wanted)
        except BaseException:  # also an interrupt: what has not begun shall not begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_one(jar: Jar, staging: Path) -> None:
    from jgo.maven import MavenContext

    context = MavenContext(
        repo_cache=staging, local_repos=[], remote_repos=repositories(), timeout=DOWNLOAD_TIMEOUT
    )
    component = context.project(jar.group, jar.artifact).at_version(jar.version)
    try:
        file = component.artifact(classifier=jar.classifier).resolve()
    except (OSError, RuntimeError) as error:
        raise _unavailable(jar, f"it could not be downloaded ({type(error).__name__})") from error
    if sha256_of(file) != jar.sha256:
        raise _unavailable(jar, "the downloaded file does not have the locked SHA-256; it was deleted")
    place = _place(jar)
    place.parent.mkdir(parents=True, exist_ok=True)
    file.replace(place)


def repositories() -> dict[str, str]:
    """Repository name to address: the user's own from jgo's configuration first, then jgo's default.

    A mirror that the user calls ``central`` takes the default's place.
    """
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL

    own = GlobalSettings.load().repositories
    return {**own, "central": own.get("central", MAVEN_CENTRAL_URL)}


def _unavailable(jar: Jar, why: str) -> StackError:
    return StackError(
        "jars-unavailable",
        f"The library {jar.coordinate} is not in the cache {cache_dir() / 'jars'} and {why}.",
        hint="Connect to the network once (jgo's configuration file may name a mirror, section "
        "[repositories]), or copy the cache of a machine that has it and set LEATSTREAM_CACHE_DIR.",
    )
