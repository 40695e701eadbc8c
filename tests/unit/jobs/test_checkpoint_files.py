"""Which way of writing checkpoints goes with which place."""

from __future__ import annotations

import pytest

from leatstream_jobs.writing.checkpoint_files import checkpoint_settings


@pytest.mark.parametrize("place", ["file:///data/queries/q/g1", "/data/queries/q/g1"])
def test_a_local_disk_renames(place: str) -> None:
    (manager,) = checkpoint_settings(place).values()
    assert manager.endswith(".FileSystemBasedCheckpointFileManager")


@pytest.mark.parametrize("place", ["hdfs://namenode/q", "s3a://bucket/q"])
def test_elsewhere_spark_decides(place: str) -> None:
    assert checkpoint_settings(place) == {}
