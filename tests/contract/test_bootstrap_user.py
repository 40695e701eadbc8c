"""``leat admin bootstrap``: the first user of a server, made with the files of its data directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes
import pytest
from served_app import serving

from leatstream.cli import app as cli_app
from leatstream.cli import client as cli_client
from leatstream.rest.app import create_app

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
Run = Callable[..., SimpleNamespace]
USER = "ann@example.com"


@pytest.fixture
def data_dir(fresh: Any, tmp_path: Path) -> Iterator[Path]:
    """The data directory of a server that runs, with what it keeps there."""
    with serving(create_app(fresh.env)) as url:
        for name, text in (("api.url", url), ("token", fakes.administrator(fresh))):
            path = tmp_path / name
            path.touch(mode=0o600)
            path.write_text(text)
        yield tmp_path


@pytest.fixture
def leat(data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("LEATSTREAM_DATA_DIR", str(data_dir))

    def run(*argv: str) -> SimpleNamespace:
        status = cli_app.run(argv)
        out, err = capsys.readouterr()
        return SimpleNamespace(status=int(status), out=out.strip(), err=" ".join(err.split()))

    return run


def test_once(leat: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = leat("admin", "bootstrap", USER)
    assert done.status == 0, done.err
    assert f"of {USER}, role orgadmin, scope admin" in done.err
    again = leat("admin", "bootstrap", "bob")
    assert (again.status, f'User "{USER}" has the role orgadmin already.' in again.err) == (5, True)
    assert leat("admin", "bootstrap", USER).status == 5
    monkeypatch.setenv("LEATSTREAM_URL", (data_dir / "api.url").read_text())
    monkeypatch.setenv("LEATSTREAM_TOKEN", done.out)
    me = json.loads(leat("whoami", "-o", "json").out)
    assert (me["name"], me["role"], me["scope"]) == (USER, "orgadmin", "admin")


def test_an_attempt_that_was_cut_off_is_completed(leat: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cli_client.Client.call

    def cut_off(self: Any, method: str, path: str, **more: Any) -> Any:
        if method == "POST":
            raise cli_client.Unreachable("cut off")
        return whole(self, method, path, **more)

    monkeypatch.setattr(cli_client.Client, "call", cut_off)
    assert leat("admin", "bootstrap", USER).status == 69
    monkeypatch.setattr(cli_client.Client, "call", whole)
    assert leat("admin", "bootstrap", USER).status == 0


def test_an_existing_user_is_left_as_it_is(leat: Run) -> None:
    done = leat("admin", "bootstrap", "bob")  # who has the role reader
    assert (done.status, "GRANT ROLE orgadmin TO USER bob" in done.err) == (5, True)


def test_elsewhere_than_on_the_machine(leat: Run, tmp_path: Path) -> None:
    done = leat("admin", "bootstrap", USER, "--data-dir", str(tmp_path / "nothing"))
    assert (done.status, "Run this on the server's machine" in done.err) == (69, True)
