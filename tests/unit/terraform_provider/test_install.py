from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from leatstream_terraform import ADDRESS, VERSION
from leatstream_terraform.__main__ import main
from leatstream_terraform.install import InstallError, install, package_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def test_the_implied_mirror_needs_no_configuration(home: Path) -> None:
    said = install()
    folder = package_folder(home / ".terraform.d" / "plugins")
    (launcher,) = folder.iterdir()
    assert launcher.name == f"terraform-provider-leatstream_v{VERSION}"
    assert os.access(launcher, os.X_OK)
    assert ADDRESS in said
    assert "filesystem_mirror" not in said
    assert (home / ".config/leatstream/interpreter").read_text() == f"{sys.executable}\n"


def test_the_launcher_is_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "one")
    monkeypatch.setattr(sys, "executable", "/another/python")
    install(tmp_path / "two")
    (one,), (two,) = (package_folder(tmp_path / name).iterdir() for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


def test_a_mirror_of_ones_own_touches_no_home(home: Path, tmp_path: Path) -> None:
    said = install(tmp_path / "mirror", dev=True)
    assert not (home / ".config").exists()
    assert str(tmp_path / "mirror") in said
    assert "dev_overrides" in said


def test_installing_twice_and_removing_leaves_nothing(home: Path) -> None:
    mirror = home / ".terraform.d" / "plugins"
    other = mirror / "registry.example.com" / "x"
    other.mkdir(parents=True)
    install()
    install()
    assert "Removed" in install(uninstall=True)
    assert [path.name for path in mirror.iterdir()] == ["registry.example.com"]
    assert not (home / ".config/leatstream/interpreter").exists()
    assert "is not installed" in install(uninstall=True)


def test_a_missing_environment_is_told(tmp_path: Path) -> None:
    install(tmp_path / "mirror")
    folder = package_folder(tmp_path / "mirror")
    (folder.parent / "interpreter").write_text("/gone/python\n")
    (launcher,) = folder.iterdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run([launcher], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "/gone/python" in done.stderr
    assert "leat terraform install" in done.stderr


def test_a_person_who_runs_it_is_told(tmp_path: Path) -> None:
    install(tmp_path / "mirror")
    (launcher,) = package_folder(tmp_path / "mirror").iterdir()
    done = subprocess.run([launcher], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Terraform starts it" in done.stderr


def test_windows_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platform.system", lambda: "Windows")
    with pytest.raises(InstallError, match="Subsystem for Linux"):
        install(tmp_path)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--mirror", str(tmp_path / "m")]) == 0
    assert "Installed" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    assert main(["install", "--mirror", str(tmp_path / "file")]) == 1
    assert "could not be installed" in capsys.readouterr().err
