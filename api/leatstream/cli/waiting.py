"""Waiting until an object with a job, or with several, is as it shall be."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leatstream.cli.nouns import Noun
from leatstream.cli.wait_line import WaitLine

if TYPE_CHECKING:
    from leatstream.cli.client import Client

WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is so.")]
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}


def seconds(value: str | float) -> float:
    """A time as in REST: ``90``, ``90s``, ``2m`` or ``500ms``; a default comes as a number."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)?", str(value))
    if match is None:
        raise typer.BadParameter(
            f"{value} is not a time: write seconds or a unit, such as 90, 90s, 2m or 500ms"
        )
    return float(match[1]) * _UNITS[match[2]]


TimeoutOption = Annotated[
    float, typer.Option("--timeout", help="Seconds to wait; also 2m.", parser=seconds, metavar="SECONDS")
]
_POLL = 30  # seconds of one long poll


class WaitTimeout(Exception):
    """A state was not reached in time."""


class WaitFailure(Exception):
    """An object has come to another state than the one that was waited for.

    Attributes:
        detail: which one, and why.
        code: of what went wrong, where that is known.
        hint: what to do about it.
    """

    def __init__(self, detail: str, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.hint = hint


def wait_for(
    client: Client, noun: Noun, name: str, states: Iterable[str], timeout: float
) -> dict[str, Any] | None:
    """Wait until the object is in one of the states.

    Args:
        client: the server.
        noun: query or application.
        name: the object's name.
        states: such as ``running``; none = until it is gone.
        timeout: seconds.

    Returns:
        The object; None when it no longer exists.

    Raises:
        WaitTimeout: it is not so within ``timeout``.
    """
    wanted = list(states)
    what = f"waiting for {noun.name} {name} to be {' or '.join(wanted[:1]) or 'gone'}"
    with WaitLine(what) as line:
        return _wait_for(client, noun, name, wanted, timeout, line)


def _wait_for(
    client: Client, noun: Noun, name: str, wanted: list[str], timeout: float, line: WaitLine
) -> dict[str, Any] | None:
    from leatstream.cli.client import ProblemAnswer

    what, deadline = line.text, time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        # A person sees what is waited for as it changes; a script only asks for the end.
        poll = f"{max(0, min(1 if line.shown else _POLL, int(left)))}s"
        try:
            long_poll = {"wait_for": ",".join(wanted), "timeout": poll} if wanted else None
            found = client.call("GET", noun.path(name), params=long_poll)
        except ProblemAnswer as answer:
            if answer.problem.get("status") == 404:
                return None
            raise
        state = found["status"]["state"]
        if state in wanted:
            return dict(found)
        line.text = ": ".join(filter(None, (f"{what}, now {state}", found["status"].get("message"))))
        if left <= 0:
            why = found["status"].get("message") or ""
            outcome = f"{noun.name.capitalize()} {name} is {state}, not {' or '.join(wanted) or 'gone'}"
            raise WaitTimeout(f"{outcome}, after {timeout:g} s. {why}".rstrip())
        time.sleep(0.2)  # a service that does not hold the poll must not be flooded


def ends_of(wanted: str) -> tuple[str, ...]:
    """The states that end a wait, the bad one last; a query that ends by itself may have ended already."""
    return ("running", "completed", "failed") if wanted == "running" else (wanted, "failed")


def refuse_failure(noun: Noun, name: str, wanted: str, found: dict[str, Any] | None) -> None:
    """Raise WaitFailure with the reason if the object is not in the state that was wanted."""
    state = found["status"]["state"] if found else "gone"
    if state in ends_of(wanted)[:-1]:
        return
    status = found["status"] if found else {}
    error = status.get("error") or {}
    why = error.get("detail") or status.get("message") or ""
    outcome = f"{noun.name.capitalize()} {name} is {state}. {why}".rstrip()
    raise WaitFailure(outcome, error.get("code"), error.get("hint"))
