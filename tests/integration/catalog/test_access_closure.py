"""What a role may do after any sequence of changes, on two servers that share a catalog in PostgreSQL."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from access_machine import AccessMachine
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from leatstream.storage.migrate import migrate

pytestmark = pytest.mark.core

SETTINGS = settings(
    max_examples=1, stateful_step_count=40, deadline=None, phases=[Phase.generate, Phase.shrink]
)


def test_rights_on_two_servers(postgres: Any) -> None:
    numbers = itertools.count()

    @contextlib.contextmanager
    def new_catalog() -> Iterator[str]:
        name = f"closure_{next(numbers)}"
        with postgres.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name}")
            url = f"postgresql://leat@127.0.0.1:{postgres.port}/{name}"
            migrate(url)
            yield url
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    class Machine(AccessMachine):
        catalog = staticmethod(new_catalog)

    run_state_machine_as_test(Machine, settings=SETTINGS)
