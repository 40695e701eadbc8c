"""The wheel, installed where there is no clone: commands start, and everything that they read is in it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[3]
# What is in the wheel besides modules, and who reads it.
READ = (
    "leatstream/console/index.html",
    "leatstream/dev/locks/spark.lock.toml",
    "leatstream/sql/function_list.txt",
    "leatstream_terraform/data/provider.json",
    "leatstream_cdktf/__init__.py",
    "leatstream_jobs/__init__.py",
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, over the libraries of this one."""
    wheels, place = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("bare") / "venv"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = wheels.glob("leatstream-*.whl")
    venv.create(place, with_pip=False, symlinks=True)
    subprocess.run(
        [*pip, "--python", str(place / "bin" / "python"), "install", "--no-deps", str(wheel)], check=True
    )
    # Of this environment the libraries only: a path file in it, such as that of the clone, does not count then.
    (site,) = place.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place


def run(place: Path, folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return subprocess.run(
        [place / "bin" / argv[0], *argv[1:]],
        cwd=folder,
        env=kept | {"HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_holds_what_its_modules_read(installed: Path, tmp_path: Path) -> None:
    (site,) = installed.glob("lib/python*/site-packages")
    assert [name for name in READ if not (site / name).is_file()] == []
    place = "import leatstream, leatstream_jobs, leatstream_terraform as t; print(leatstream.__file__, t.__file__)"
    said = run(installed, tmp_path, "python", "-c", place)
    assert said.stdout.count(str(site)) == 2, said.stderr


def test_commands_start_anywhere(installed: Path, tmp_path: Path) -> None:
    for program in ("leat", "leatstream"):
        assert run(installed, tmp_path, program, "--version").stdout.startswith("leat")
    assert run(installed, tmp_path, "leat", "openapi").stdout.startswith("openapi: 3.1")
    made = run(installed, tmp_path, "leat", "init", "shop", "--form", "sql")
    assert (made.returncode, (tmp_path / "shop" / "pipeline.sql").is_file()) == (0, True), made.stderr


def test_the_demo_names_what_it_lacks_at_once(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "leat", "demo")
    assert (done.returncode, "a clone of the project" in " ".join(done.stdout.split())) == (1, True), (
        done.stdout
    )
