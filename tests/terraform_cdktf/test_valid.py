"""What the constructs synthesize is valid for the real provider; no service is needed for that."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.core

GOLDEN = Path(__file__).resolve().parents[1] / "unit" / "cdktf" / "golden.json"


@pytest.mark.parametrize("library", ["cdktn", "cdktf"])
def test_the_example_is_valid(
    library: str, tmp_path: Path, terraform_in: Callable[..., Any], synthesize_example: Callable[..., Path]
) -> None:
    terraform = terraform_in(synthesize_example(library, tmp_path / "cdktf.out", "localhost:9092"))
    terraform.run("init")
    assert "The configuration is valid" in terraform.run("validate")


def test_everything_the_constructs_can_say_is_valid(tmp_path: Path, terraform_in: Callable[..., Any]) -> None:
    # The unit tests compare both libraries with this file.
    shutil.copy(GOLDEN, tmp_path / "main.tf.json")
    terraform = terraform_in(tmp_path)
    terraform.run("init")
    assert "The configuration is valid" in terraform.run("validate")


def test_an_unreachable_service_is_told_at_plan(
    tmp_path: Path, terraform_in: Callable[..., Any], synthesize_example: Callable[..., Path]
) -> None:
    folder = synthesize_example("cdktn", tmp_path / "cdktf.out", "localhost:9092")
    terraform = terraform_in(
        folder,
        LEATSTREAM_URL="http://127.0.0.1:1",
        LEATSTREAM_TOKEN="none",
        LEATSTREAM_RETRY_SECONDS="0",
    )
    terraform.run("init")
    told = terraform.run("plan", "-input=false", good=(1,))
    assert "http://127.0.0.1:1 cannot be reached" in " ".join(told.split())
