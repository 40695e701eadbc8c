"""A real schema registry for the tests: Apicurio, whose API is Confluent's, fetched once into the cache."""

from __future__ import annotations

import subprocess
import tarfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from deadlines import patient

from leatstream.dev.cache import cache_dir, exclusive
from leatstream.dev.jars import DOWNLOAD_TIMEOUT, repositories, sha256_of
from leatstream.dev.java import find_java
from leatstream.dev.ports import free_ports

# The lock: what is fetched, and that nothing else is run.
GROUP, ARTIFACT, VERSION = "io.apicurio", "apicurio-registry-app", "2.6.13.Final"
SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
START_SECONDS = 120.0


def runner() -> Path:
    """The program's jar, from the cache or from the Maven repository that jgo is configured with."""
    place = cache_dir() / "tests" / f"{ARTIFACT}-{VERSION}"
    jar = place / f"{ARTIFACT}-{VERSION}-runner.jar"
    if not jar.is_file():
        with exclusive("registry"):
            if not jar.is_file():
                _fetch(place)
    return jar


def _fetch(place: Path) -> None:
    from jgo.maven import MavenContext

    context = MavenContext(
        repo_cache=place.parent / "staging",
        local_repos=[],
        remote_repos=repositories(),
        timeout=DOWNLOAD_TIMEOUT,
    )
    component = context.project(GROUP, ARTIFACT).at_version(VERSION)
    archive = component.artifact(classifier="all", packaging="tar.gz").resolve()
    assert sha256_of(archive) == SHA256, "the downloaded registry does not have the locked SHA-256"
    whole = place.with_suffix(".new")
    with tarfile.open(archive) as packed:
        packed.extractall(whole, filter="data")
    archive.unlink()
    whole.rename(place)


class RegistryServer:
    """A running registry, its schemas in memory."""

    def __init__(self, log: Path) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}/apis/ccompat/v7"
        java = find_java()
        assert java is not None
        options = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1"]
        argv = [str(java.executable), *options, f"-Dquarkus.http.port={self.port}", "-jar", str(runner())]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                argv, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + patient(START_SECONDS)
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise AssertionError(f"the registry did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/subjects", timeout=5) as answer:
                return answer.status == 200
        except (URLError, OSError):
            return False

    def stop(self) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
