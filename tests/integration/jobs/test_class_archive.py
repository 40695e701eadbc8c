"""The maker of the archive of classes, cut off: a server that ends takes it along."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from driver_variables import driver_variables

pytestmark = pytest.mark.spark


def test_a_maker_that_is_ended_leaves_no_jvm_and_no_torn_file(
    tmp_path: Path, eventually: Callable[..., Any]
) -> None:
    place = tmp_path / "classes"
    place.mkdir()
    with (tmp_path / "log").open("wb") as log:
        maker = subprocess.Popen(
            [sys.executable, "-m", "leatstream_jobs.driver.class_archive", str(place / "spark.jsa")],
            env=os.environ | driver_variables(),
            stdout=log,
            stderr=log,
        )

    def jvm() -> psutil.Process | None:
        children = psutil.Process(maker.pid).children(recursive=True)
        # Late enough that the JVM would write its classes, had it only been asked to end.
        return next((c for c in children if c.name() == "java" and c.cpu_times().user > 2), None)

    try:
        java = eventually(jvm, 120, "the JVM")
        maker.terminate()
        assert maker.wait(60) != 0
        java.wait(5)
        assert list(place.iterdir()) == []
    finally:
        maker.kill()
        maker.wait()
