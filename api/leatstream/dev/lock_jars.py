"""Writes the committed jar locks: ``python -m leatstream.dev.lock_jars`` (needs the network).

The set for PySpark is a list on purpose: resolved with their dependencies, the jars bring a second copy of
libraries that PySpark already ships (see docs/adr on engine versions).
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from leatstream.dev.jars import JarSet, repositories, sha256_of

if TYPE_CHECKING:
    from jgo.maven import Artifact, MavenContext

SPARK = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
# With all that it needs inside, renamed: its plain form would bring an AWS SDK into Spark's class path.
MSK = ("software.amazon.msk:aws-msk-iam-auth:2.3.9", "all")
# For tests alone: the database behind their double of Oracle.
H2 = "com.h2database:h2:2.5.252"
# For tests alone: Delta Lake for PySpark's version, behind their double of a Databricks warehouse.
DELTA = ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0")
BROKER_CLOSURE = "org.apache.kafka:kafka_2.13:4.1.1"
# The broker brings slf4j-api 1.7 and log4j-core but no bridge between them: the 1.x one, of log4j's version.
BROKER_EXTRA = ("org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",)


def main() -> None:
    """Resolve, download and write the locks next to this file."""
    with tempfile.TemporaryDirectory() as scratch:
        write_lock("spark", [_single(scratch, c) for c in SPARK])
        write_lock("msk", [_single(scratch, *MSK)])
        write_lock("h2", [_single(scratch, H2)])
        write_lock("delta", [_single(scratch, c) for c in DELTA])
        write_lock(
            "broker",
            [
                *_closure(scratch, BROKER_CLOSURE),
                *(_single(scratch, c) for c in BROKER_EXTRA),
            ],
        )


def write_lock(jar_set: JarSet, artifacts: list[Artifact]) -> None:
    """Write one lock: jgo's TOML form without time stamp and addresses: equal content is equal text."""
    lines = [f"# {jar_set} jars; written by python -m leatstream.dev.lock_jars"]
    for artifact in artifacts:
        lines += [
            "",
            "[[dependencies]]",
            f'groupId = "{artifact.groupId}"',
            f'artifactId = "{artifact.artifactId}"',
            f'version = "{artifact.version}"',
            *([f'classifier = "{artifact.classifier}"'] if artifact.classifier else []),
            f'sha256 = "{sha256_of(artifact.resolve())}"',
        ]
    target = Path(__file__).parent / "locks" / f"{jar_set}.lock.toml"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{target}: {len(artifacts)} jars")


def _context(scratch: str) -> MavenContext:
    from jgo.maven import MavenContext

    return MavenContext(repo_cache=Path(scratch), remote_repos=repositories(), timeout=60)


def _single(scratch: str, coordinate: str, classifier: str = "") -> Artifact:
    group, artifact, version = coordinate.split(":")
    return _context(scratch).project(group, artifact).at_version(version).artifact(classifier=classifier)


def _closure(scratch: str, coordinate: str) -> list[Artifact]:
    from jgo.parse import Coordinate

    context = _context(scratch)
    root = context.create_dependency(replace(Coordinate.parse(coordinate), scope="compile"))
    inputs, transitive = context.resolver.resolve([root])
    return [d.artifact for d in (*inputs, *transitive) if d.scope in ("compile", "runtime")]


if __name__ == "__main__":
    main()
