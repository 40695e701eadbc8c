"""The driver's own local file system, in a real JVM."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from leatstream_jobs.runtime.local_files import CLASS, spare_programs

pytestmark = pytest.mark.spark


def _files(spark: SparkSession) -> tuple[Any, Any]:
    context: Any = spark.sparkContext
    hadoop = context._jvm.org.apache.hadoop.fs
    return hadoop, hadoop.FileSystem.getLocal(context._jsc.hadoopConfiguration())


def test_modes_are_set_without_a_program(spark: SparkSession, tmp_path: Path) -> None:
    hadoop, files = _files(spark)
    assert files.getRaw().getClass().getName() == CLASS
    path = hadoop.Path(str(tmp_path / "made"))
    files.create(path).close()
    umask = hadoop.permission.FsPermission.getUMask(files.getConf()).toShort()
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o666 & ~umask
    # Checksums are written as before.
    assert (tmp_path / ".made.crc").exists()
    for mode in (0o600, 0o755, 0o1777):
        files.setPermission(path, hadoop.permission.FsPermission(f"{mode:o}"))
        assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == mode


def test_a_file_that_is_not_there_is_told(spark: SparkSession, tmp_path: Path) -> None:
    hadoop, files = _files(spark)
    with pytest.raises(Exception, match="NoSuchFileException"):
        files.setPermission(hadoop.Path(str(tmp_path / "none")), hadoop.permission.FsPermission("600"))


def test_a_jvm_that_cannot_be_changed_works_on(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, files = _files(spark)
    before = files.getRaw()
    monkeypatch.setattr("leatstream_jobs.runtime.local_files._SOURCE", "class {")
    with caplog.at_level(logging.WARNING):
        spare_programs(spark)
    assert "chmod" in caplog.text
    assert files.getRaw().equals(before)
